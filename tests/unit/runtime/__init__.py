"""The driver and the signals."""
