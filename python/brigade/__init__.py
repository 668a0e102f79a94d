"""Brigade: I/O for jobs too wide for their file system."""

__version__ = "0.1.0"
