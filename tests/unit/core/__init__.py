"""The functional core, event by event."""
