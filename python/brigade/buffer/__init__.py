"""What a program's buffered I/O was like, and what would make it faster: of `brigade buffer`."""
