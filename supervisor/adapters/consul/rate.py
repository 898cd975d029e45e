"""A limit on how often a blocking query is repeated.

The first changes in a row are reported at once, later changes 20 times a second. Without the limit a program
that writes a key all the time would keep this process busy. A hand-over is three or four changes, so it never
waits.
"""

BURST = 20  # changes in a row that are reported at once
EVERY_S = 0.05  # between two queries after the burst


class RateLimit:
    """The limit of one query. ``now`` must never go back."""

    def __init__(self) -> None:
        self._spent_until = float("-inf")  # each query spends EVERY_S

    def wait_s(self, now: float) -> float:
        """Return how many seconds the next query must wait, and count that query as sent."""
        self._spent_until = max(self._spent_until, now) + EVERY_S
        return max(0.0, self._spent_until - now - BURST * EVERY_S)
