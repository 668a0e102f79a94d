"""Real programs, in a table: how each comes onto a file system, how it starts, what it prints."""
