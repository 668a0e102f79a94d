"""Profiles: what a start-up costs a shared file system, and why."""
