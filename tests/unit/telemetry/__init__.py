"""Log, metrics and what systemd is told."""
