"""What the page cache does to a program's writes and reads: `brigade bench cache`.

plan.py says what is done (steps of model/cache/workload.py), memory.py limits the memory it has,
measure.py does it, conclude.py says in words what the samples show.
"""
