"""The driver, signals, and what a start makes of records."""
