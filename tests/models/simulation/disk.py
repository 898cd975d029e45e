"""A node's disk: the real journal in a real folder, which outlives the supervisors that write it.

A full disk is the kernel's own refusal to let a file grow. A crash in a write leaves the whole line or
nothing, because the line is one call of the kernel.
"""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from supervisor.adapters.hooks.abandoned import Group
from supervisor.adapters.journal import Journal, MachineIdentity, Recorded, UnreadableRecord
from supervisor.adapters.journal.copies import SUFFIX
from supervisor.adapters.journal.format import read
from supervisor.config.settings import ConsulSettings
from supervisor.core.actions import WriteRecord
from tests.models.simulation.files import ITEM

CONSUL = ConsulSettings("http://127.0.0.1:8500")


class Disk:
    """The disk of one node. ``is_full`` returns whether the disk has no room at this moment."""

    def __init__(self, folder: Path, is_full: Callable[[], bool]) -> None:
        self._folder = folder
        self._is_full = is_full
        self._path = folder / f"{ITEM}{SUFFIX}"
        self._journal: Journal | None = None

    def recorded(self) -> Recorded | None:
        """Return the record that a start reads from these bytes; raise Unreadable for damaged ones."""
        try:
            return read(self._path.read_bytes())
        except FileNotFoundError:
            return None

    def open(self, identity: MachineIdentity) -> Recorded | None:
        """Open the journal for a supervisor that starts; raise Unreadable, which a crash never causes."""
        assert self._journal is None, "two supervisors on one disk"
        self._journal = Journal(str(self._folder), CONSUL, identity=identity)
        found = dict(self._journal.recorded()).get(ITEM)
        if isinstance(found, UnreadableRecord):
            raise found
        return found

    def close(self) -> None:
        """Close the journal of a supervisor that is gone, with its locks and descriptors."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def write(self, write: WriteRecord) -> str:
        """Write a record, and return blank or why it could not be written."""
        with self._room():
            return self._open_journal().write(write)

    def die_in(self, write: WriteRecord, *, after: bool) -> None:
        """Let the process die in the write: the kernel has the whole line or none, and no event follows."""
        if after:
            self.write(write)

    def group_began(self, group: Group) -> None:
        with self._room():
            self._open_journal().group_began(ITEM, group)

    def group_ended(self, group: Group) -> None:
        with self._room():
            self._open_journal().group_ended(ITEM, group)

    def settle(self) -> None:
        """Write the ends of groups that no record has yet."""
        with self._room():
            self._open_journal().settle(ITEM)

    def _open_journal(self) -> Journal:
        assert self._journal is not None, "a supervisor that is gone writes"
        return self._journal

    def _content(self) -> bytes:
        return self._path.read_bytes() if self._path.exists() else b""

    @contextmanager
    def _room(self) -> Iterator[None]:
        if not self._is_full():
            yield
            return
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(self._content()), hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
