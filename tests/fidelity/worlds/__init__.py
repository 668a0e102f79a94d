"""Random worlds of ELF programs, run plain and under each view. See test_worlds.py."""
