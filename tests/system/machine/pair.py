"""Two booted machines: one runs Consul's server, the other a client agent."""

from collections.abc import Sequence

from tests.system.machine.group import Group

ADDRESSES = {"one": "10.20.30.1", "two": "10.20.30.2"}
OF_THREE = {**ADDRESSES, "three": "10.20.30.3"}


class Pair(Group):
    """Machines ``one`` and ``two``; the first runs Consul's server."""

    addresses = ADDRESSES
    servers: Sequence[str] = ("one",)
