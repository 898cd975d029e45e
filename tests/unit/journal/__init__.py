"""Records on a disk that is full, cut off or damaged."""
