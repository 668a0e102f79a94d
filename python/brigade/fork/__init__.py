"""Ranks forked from a warm process: what of a program's start-up one process can do for all."""
