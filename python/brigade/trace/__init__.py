"""Traces: every file-system call of a job, whoever recorded it, as one kind of value."""
