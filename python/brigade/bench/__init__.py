"""Benchmarks of loading: worlds of generated libraries and modules, and programs that load them.

plan.py and layout.py say what a world is (pure: the same seed, the same world, and what a visit of
it must answer); sources.py writes it as C; build.py compiles it, in parallel, into a cache; run.py
starts it under a launcher and gathers what the ranks say. drivers/ holds what runs in a rank.
"""
