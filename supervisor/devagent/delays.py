"""Lock-delay: from when on a key may be locked whose lock was taken away by its session's end.

Kept in the memory of the server that leads, by its clock, under the key's name. Nobody is woken when
a delay ends. A restarted server replays its raft log and so starts every delay anew that the log
remembers; and each delay that was ever started removes, at its own end, whatever delay the key has
at that moment. So after a restart an old, short delay can cut a new, long one short.
"""

from dataclasses import dataclass, field

SNAPSHOT_ENTRIES = 16384  # raft_snapshot_threshold: what a snapshot holds is not replayed
NEVER = float("-inf")


@dataclass(slots=True)
class LockDelays:
    """The delays of all keys; all times are the caller's."""

    ends: dict[str, list[float]] = field(default_factory=dict)
    until: dict[str, float] = field(default_factory=dict)
    log: list[tuple[int, str, float]] = field(default_factory=list)

    def start(self, key: str, delay_s: float, now: float, index: int) -> None:
        """A lock was taken away with this delay, by the raft entry ``index``."""
        self.log = [logged for logged in self.log if logged[0] > index - SNAPSHOT_ENTRIES]
        self.log.append((index, key, delay_s))
        self._run(key, delay_s, now)

    def holds(self, key: str, now: float) -> bool:
        """Whether the key is not to be locked yet."""
        return now < self.until.get(key, NEVER)

    def replay(self, now: float) -> None:
        """The server has restarted: what it remembered is gone, what its log says runs again."""
        self.ends.clear()
        self.until.clear()
        for _, key, delay_s in self.log:
            self._run(key, delay_s, now)

    def _run(self, key: str, delay_s: float, now: float) -> None:
        pending = [end for end in self.ends.get(key, ()) if end > now]
        self.ends[key] = [*pending, now + delay_s]
        self.until[key] = min(self.ends[key])
