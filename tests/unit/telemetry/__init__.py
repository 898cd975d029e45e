"""The log, metrics, and the notifications of systemd."""
