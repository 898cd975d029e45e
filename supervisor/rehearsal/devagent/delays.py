"""Lock-delay: until when Consul keeps a key locked after the end of its holder's session.

The leading server keeps the delays in memory, by its own clock, under the keys' names. The end of a delay
wakes no query. A restarted server replays its raft log and starts each delay of the log again; and each
delay removes, at its own end, whatever delay the key has at that moment. So after a restart an old, short
delay can cut a new, long one short.
"""

from dataclasses import dataclass, field

SNAPSHOT_ENTRIES = 16384  # raft_snapshot_threshold: what a snapshot holds is not replayed
NEVER = float("-inf")


@dataclass(slots=True)
class LockDelays:
    """The delays of all keys. The caller's clock counts."""

    ends: dict[str, list[float]] = field(default_factory=dict)
    log: list[tuple[int, str, float]] = field(default_factory=list)

    def start(self, key: str, delay_s: float, now: float, index: int) -> None:
        """Start a delay, because the raft entry ``index`` has taken the key's lock away."""
        self.log = [logged for logged in self.log if logged[0] > index - SNAPSHOT_ENTRIES]
        self.log.append((index, key, delay_s))
        self._run(key, delay_s, now)

    def holds(self, key: str, now: float) -> bool:
        return now < min(self.ends.get(key, ()), default=NEVER)

    def replay(self, now: float) -> None:
        """Forget all delays, as a restarted server does, and start those of the log again."""
        self.ends.clear()
        for _, key, delay_s in self.log:
            self._run(key, delay_s, now)

    def _run(self, key: str, delay_s: float, now: float) -> None:
        pending = [end for end in self.ends.get(key, ()) if end > now]
        self.ends[key] = [*pending, now + delay_s]
