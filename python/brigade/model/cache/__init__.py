"""The Linux page cache, simulated: what a program's writes and reads take, and what stays cached.

workload.py says what is done, settings.py on what; simulate.py does it. Pure: no I/O, no clock.
"""
