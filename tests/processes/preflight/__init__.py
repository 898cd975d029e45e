"""The check whether hooks can start on this machine."""
