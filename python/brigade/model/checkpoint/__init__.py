"""When to checkpoint: expected time of a job that fails, and what makes it least. Pure planning."""
