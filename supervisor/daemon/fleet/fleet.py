"""The parts of a daemon that other nodes and people know through Consul, as one."""

from collections.abc import Sequence
from functools import partial

from supervisor.adapters.journal.copies import ORDERS
from supervisor.adapters.runtime.background import Background
from supervisor.config import Config
from supervisor.core.actions import Action
from supervisor.core.events import Event
from supervisor.daemon.fleet.catalog import Catalog
from supervisor.daemon.fleet.history import CLOSE_S, TenureHistory
from supervisor.daemon.fleet.orders import FollowedOrders
from supervisor.daemon.fleet.presence import Presence
from supervisor.daemon.records import Records
from supervisor.daemon.shared import Shared


class Fleet:
    """This node as a part of its fleet."""

    def __init__(self, config: Config, shared: Shared, records: Records) -> None:
        self._tenures = TenureHistory(config, shared)
        self._presence = Presence(config, shared)
        self._orders = FollowedOrders(config, shared, records.kept(ORDERS), partial(records.keep_as, ORDERS))
        self._catalog = Catalog(config, shared)
        self.shown = self._catalog.body  # the whole fleet as JSON, for whoever asks this daemon
        self.on_facts = self._tenures.on_step

    def on_step(self, event: Event, actions: Sequence[Action]) -> None:
        self._presence.on_step(event, actions)
        self._orders.on_step(event, actions)

    def follow(self, config: Config) -> None:
        for part in (self._tenures, self._presence, self._orders, self._catalog):
            part.follow(config)

    def begin(self, background: Background) -> None:
        background.start(self._presence.run())
        self._orders.begin()

    async def close(self, *, in_haste: bool, leaves: bool) -> None:
        """End all parts. ``leaves``: whether this node also leaves Consul's catalog."""
        self._orders.close()
        self._catalog.close()
        await self._tenures.close(0.0 if in_haste else CLOSE_S)
        if leaves:
            await self._presence.leave()
