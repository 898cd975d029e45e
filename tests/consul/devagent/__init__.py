"""The embedded agent beside the real one."""
