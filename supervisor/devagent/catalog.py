"""Nodes and their health checks, as far as sessions are bound to them.

Each node has ``serfHealth``, which passes while its agent is alive. Other checks are registered at
an agent, with a TTL or by being set; none is ever run here.
"""

from dataclasses import dataclass, field

SERF_HEALTH = "serfHealth"
PASSING, WARNING, CRITICAL = "passing", "warning", "critical"
STATUSES = (PASSING, WARNING, CRITICAL)


@dataclass(frozen=True, slots=True)
class Check:
    """One check. ``ttl_s`` None: nothing but a request changes its status."""

    id: str
    name: str
    status: str
    ttl_s: float | None = None
    kind: str = ""
    notes: str = ""
    output: str = ""
    service_id: str = ""
    service_name: str = ""
    create_index: int = 0
    modify_index: int = 0


@dataclass(frozen=True, slots=True)
class Service:
    """One service of a node; it only carries checks."""

    id: str
    name: str
    tags: tuple[str, ...] = ()
    port: int = 0


@dataclass(slots=True)
class Node:
    """One node; ``name`` as it was registered (look-ups do not mind the case)."""

    name: str
    create_index: int
    checks: dict[str, Check] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)


@dataclass(slots=True)
class Catalog:
    """All nodes, by their names in lower case."""

    nodes: dict[str, Node] = field(default_factory=dict)
    index: int = 0

    def node(self, name: str) -> Node | None:
        """The node of this name, whatever the case of its letters."""
        return self.nodes.get(name.lower())

    def join(self, name: str, index: int) -> Node:
        """Register a node, its agent alive."""
        serf = Check(
            SERF_HEALTH,
            "Serf Health Status",
            PASSING,
            output="Agent alive and reachable",
            create_index=index,
            modify_index=index,
        )
        node = self.nodes[name.lower()] = Node(name, index, {SERF_HEALTH.lower(): serf})
        self.index = index
        return node
