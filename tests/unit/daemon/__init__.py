"""The restore of a start from records."""
