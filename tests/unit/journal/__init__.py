"""Records: their format, and a disk that is full, cut off or damaged."""
