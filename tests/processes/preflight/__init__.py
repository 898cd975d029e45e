"""Whether hooks can start on this machine."""
