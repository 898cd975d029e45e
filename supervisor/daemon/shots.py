"""Which machines this node has shot, on disk, because ``fence_limit`` counts them over restarts and boots."""

from collections.abc import Sequence
from contextlib import suppress

from supervisor.adapters.journal.copies import SHOTS
from supervisor.config import Config
from supervisor.config.formats import shot_notes
from supervisor.core.actions import Action
from supervisor.core.events import Event
from supervisor.daemon.records import Records
from supervisor.daemon.shared import Shared


class KeptShots:
    """The shots of one node on disk."""

    def __init__(self, shared: Shared, config: Config, records: Records) -> None:
        """Recall what an earlier process has kept, if this one may shoot."""
        self._shared, self._records, self._grants = shared, records, shared.contenders.shots.grants
        if any(each.fence is not None for each in config.items):
            with suppress(shot_notes.ForeignNotes):  # there are none, or the file is damaged
                self._grants.own = shot_notes.decoded(records.kept(SHOTS), self._wall_s)
        self._kept = self._grants.own

    @property
    def _wall_s(self) -> float:
        """Return Unix time less the core's clock."""
        return self._shared.wall() - self._shared.clock()

    def on_step(self, event: Event, actions: Sequence[Action]) -> None:
        if self._grants.own is not self._kept:
            self._kept = self._grants.own
            self._records.keep_as(SHOTS, shot_notes.encoded(self._kept, self._wall_s))
