"""A disk that outlives the supervisor: the journal's real bytes in memory.

It does what the journal's own file does: settings before the first state, one write a record, an
unfinished line cut off before the next process appends, nothing kept when nothing is owed.
"""

from supervisor.config.settings import ConsulSettings
from supervisor.core.actions import Memory
from supervisor.core.election import NOTHING
from supervisor.core.settings import ElectionSettings
from supervisor.journal import COMPACT_BYTES, Identity, Recorded
from supervisor.journal.lines import is_at_rest, read, settings_line, state_line
from supervisor.leftovers import Group

CONSUL = ConsulSettings("http://127.0.0.1:8500")
TIME = "2026-01-01T00:00:00Z"
FULL = "cannot write the journal: No space left on device"


class Disk:
    """One election's file. ``memory`` and ``groups``: what the process that has it open wrote last."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.memory = NOTHING
        self.groups: tuple[Group, ...] = ()
        self._settings: ElectionSettings | None = None

    def recorded(self) -> Recorded | None:
        """What a process that starts finds. Raises Unreadable."""
        return read(bytes(self.data))

    def opened(self) -> None:
        """By another process: it appends behind what is whole, and kept nothing itself yet."""
        del self.data[self.data.rfind(b"\n") + 1 :]
        self.memory, self.groups, self._settings = NOTHING, (), None

    def write(
        self, memory: Memory, groups: tuple[Group, ...], settings: ElectionSettings, identity: Identity
    ) -> None:
        """One whole record."""
        if is_at_rest(memory, groups):
            self.data.clear()
            self._settings = None
        else:
            if len(self.data) > COMPACT_BYTES:
                self.data.clear()
                self._settings = None
            self.data += self._line(memory, groups, settings, identity)
            self._settings = settings
        self.memory, self.groups = memory, groups

    def keep_groups(self, groups: tuple[Group, ...], identity: Identity) -> None:
        """Process groups of hooks; without a record of the election itself there is nothing to keep."""
        if self._settings is not None:
            self.write(self.memory, groups, self._settings, identity)

    def tear(self, memory: Memory, settings: ElectionSettings, identity: Identity, share: float) -> None:
        """The process died in the write: some of the bytes are there, and nobody was told."""
        line = self._line(memory, self.groups, settings, identity)
        self.data += line[: int(share * (len(line) - 1))]

    def _line(
        self, memory: Memory, groups: tuple[Group, ...], settings: ElectionSettings, identity: Identity
    ) -> bytes:
        line = state_line(memory, groups, identity, TIME)
        if settings is not self._settings:
            line = settings_line(settings, CONSUL, ()) + line
        return line
