"""How often a question is asked again that is answered at each change: at once for the first changes, then
so many times a second.

Without it a key that another program writes without pause, or a peer that answers without one, keeps this
process as busy as that program can. A hand-over is a few changes, and waits for nothing.
"""

BURST = 20  # changes in a row that are heard of at once: a hand-over is three or four
EVERY_S = 0.05  # from then on; a change that takes so long to be told is told soon enough


class Spacing:
    """Of one question. It must never be told of a time before the last one."""

    def __init__(self) -> None:
        self._spent_until = float("-inf")  # each question spends EVERY_S of a time that passes by itself

    def wait_s(self, now: float) -> float:
        """For how many seconds the question that is to be asked now waits; it counts as asked."""
        self._spent_until = max(self._spent_until, now) + EVERY_S
        return max(0.0, self._spent_until - now - BURST * EVERY_S)
