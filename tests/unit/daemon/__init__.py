"""The driver, signals, and the restore of a start from records."""
