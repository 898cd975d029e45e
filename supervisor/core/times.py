"""Two times that no clock shows."""

NEVER = float("inf")  # a time that does not come
LONG_AGO = -NEVER  # a time before all others: what was planned for it is due at once, or is long over
