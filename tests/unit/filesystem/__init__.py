"""Which file systems are local."""
