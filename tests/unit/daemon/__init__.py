"""The driver, signals, and what a start restores from records."""
