"""Measure what a file system's metadata service gives: gently, bounded, and said beforehand."""
