"""Programs that run in the ranks of a benchmark."""
