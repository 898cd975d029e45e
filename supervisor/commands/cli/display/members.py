"""Members of elections and semaphores, and sessions, as lines for a person and as JSON for a program.

The functions are pure. All text of Consul is escaped, because any program may have written it.
"""

import json
from collections.abc import Iterator, Sequence

from supervisor.adapters.consul.members import Member, Members, Node, Part, SupervisorSession
from supervisor.commands.cli.display.grid import Column, grid
from supervisor.commands.cli.display.text import escape, fit, wrapped
from supervisor.config.formats.durations import format_duration
from supervisor.core.outcomes import KeyView, ListedSession

JSON_VERSION = 1  # of the documents' shape; an added field does not change it
NONE = "-"
NO_SESSION = (
    "A node that neither holds nor contends (ineligible, paused, resting, stopped, an observer) has no "
    "session, so it is not listed. Without fleet a node with contend: manual is listed as a candidate."
)
FLEET = (
    "A node without a session is listed by what its daemon told Consul's catalog last (fleet). A daemon that "
    "was stopped in order is not listed."
)
ORPHANS = (
    "An orphan has no part in any item, and its node has another session of this name; or an earlier tenure "
    "of this node had it, by the events of its daemon. If several supervisors share one Consul agent, it may "
    "belong to one that waits, which makes another session when this one is destroyed."
)
_ITEM, _ID = Column("ITEM", 8), Column("SESSION")
_TIMES = (Column("TTL", rank=3), Column("LOCK-DELAY", rank=2))
_MEMBER = (Column("PART"), Column("NODE", 8), Column("CONSUL NODE", 8, rank=1), _ID, *_TIMES)
_SESSION = (
    Column("SESSION"),
    Column("CONSUL NODE", 8),
    Column("NAME", 8, rank=1),
    *_TIMES,
    Column("PART", 12),
)


def member_lines(item: Members, room: int | None) -> list[str]:
    lines = [fit(_headline(item), room)]
    if rows := [*_rows(item)]:
        lines += ["", *grid(_MEMBER, rows, room)]
    return [*lines, "", *wrapped(_notes([item]), room)]


def cluster_lines(items: Sequence[Members], room: int | None) -> list[str]:
    rows = []
    for item in items:
        name = escape(item.settings.name)
        found = [*_rows(item)]
        rows += [[name, *cells] for cells in found]
        if not found:
            nobody = "nobody" if item.is_complete else "not known"
            rows.append([name, nobody, *[NONE] * (len(_MEMBER) - 1)])
    return [*grid((_ITEM, *_MEMBER), rows, room), "", *wrapped(_notes(items), room)]


def session_lines(sessions: Sequence[SupervisorSession], room: int | None) -> list[str]:
    rows = [
        [
            escape(each.listed.id),
            escape(each.listed.node) or NONE,
            escape(each.listed.name) or NONE,
            *_times(each.listed),
            escape(part_of(each)),
        ]
        for each in sessions
    ]
    return grid(_SESSION, rows, room)


def part_of(session: SupervisorSession) -> str:
    if session.parts:
        parts = ", ".join(f"{part} of {name}" for name, part in session.parts.items())
        return f"orphan, {parts}" if session.is_orphan else parts
    if session.is_orphan:
        return f"orphan of {', '.join(session.named)}"
    if session.is_known:
        return f"candidate of {', '.join(session.named)}"
    if session.named:
        return f"not known: the token may not read the keys of {', '.join(session.named)}"
    return "not known: no item of the configuration has this name"


def members_json(items: Sequence[Members]) -> str:
    return json.dumps({"version": JSON_VERSION, "items": [_item(item) for item in items]}, indent=2)


def sessions_json(sessions: Sequence[SupervisorSession], *, is_complete: bool) -> str:
    """Return the sessions as one JSON document. is_complete: whether Consul reports no hidden session."""
    document = {
        "version": JSON_VERSION,
        "complete": is_complete,
        "sessions": [
            {
                **session_fields(each.listed),
                "parts": [{"item": name, "part": part} for name, part in each.parts.items()],
                "named_as": list(each.named),
                "known": each.is_known,
                "orphan": each.is_orphan,
            }
            for each in sessions
        ],
    }
    return json.dumps(document, indent=2)


def leader_json(key: str, view: KeyView, holder: Member) -> str:
    """Return the holder of an election's key as one JSON document.

    A plain PUT over the key sets its LockIndex to 0, and then no index is left of the moment when the holder
    began to hold.
    """
    document = {
        "version": JSON_VERSION,
        "key": key,
        "value": holder.value.decode(errors="replace"),
        "node": holder.node or None,
        **session_fields(holder.listed),
        "session": holder.session,
        "fencing_token": view.modify_index if view.lock_index else None,
        "modify_index": view.modify_index,
        "lock_index": view.lock_index,
    }
    return json.dumps(document, indent=2)


def session_fields(listed: ListedSession | None) -> dict[str, object]:
    """Return the fields of a session. All are null when Consul does not show the session."""
    fields = ("session", "session_name", "consul_node", "ttl", "lock_delay_s", "create_index")
    if listed is None:
        return dict.fromkeys(fields)
    ttl, delay_s = listed.ttl or None, listed.lock_delay_s
    values = (listed.id, listed.name, listed.node, ttl, delay_s, listed.create_index)
    return dict(zip(fields, values, strict=True))


def _item(item: Members) -> dict[str, object]:
    settings = item.settings
    return {
        "name": settings.name,
        "kind": settings.kind,
        "key": settings.key,
        "limit": item.limit,
        "complete": item.is_complete,
        "notes": list(item.notes),
        "nodes": [_node(node) for node in item.nodes],
        "members": [
            {
                "part": member.part,
                "node": member.node or None,
                **session_fields(member.listed),
                "session": member.session,
                "slot": member.slot,
            }
            for member in item.members
        ],
    }


def _node(node: Node) -> dict[str, object]:
    of, meta = node.of, node.of.meta
    return {
        "node": of.name,
        "consul_node": of.consul_node,
        "role": node.role or None,
        "detail": node.detail,
        "status": of.status,
        "says": of.says,
        "changed": meta.get("at"),
        "version": meta.get("version"),
        "page": meta.get("page"),
        "left_out": of.left_out,
        "session": None if node.member is None else node.member.session,
    }


def _headline(item: Members) -> str:
    settings = item.settings
    holders, candidates = len(item.of_part(Part.HOLDER)), len(item.of_part(Part.CANDIDATE))
    candidates += sum(node.waits for node in item.nodes)
    held = f"{holders} holder{'' if holders == 1 else 's'}"
    if settings.kind == "semaphore":
        held += f" of {item.limit if item.limit is not None else '?'}"
    waiting = f"{candidates} candidate{'' if candidates == 1 else 's'}"
    known = "" if item.is_complete else " known"
    return escape(f"{settings.name}: {settings.kind} {settings.key}, {held}, {waiting}{known}")


def _rows(item: Members) -> Iterator[list[str]]:
    """Yield the cells of each member, then of each node that has no session or none that is recognised."""
    names = {id(node.member): node.of.name for node in item.nodes}
    for member in item.members:
        part = member.part if member.slot is None else f"{member.part}, slot {member.slot}"
        consul_node = member.listed.node if member.listed else ""
        named = (names.get(id(member)) or member.node, consul_node, member.session)
        yield [part, *(escape(name) or NONE for name in named), *_times(member.listed)]
    for node in item.nodes:
        if node.member is None:
            part = "silent" if node.of.status == "critical" else node.role or "not told"
            yield [*map(escape, (part, node.of.name, node.of.consul_node)), NONE, NONE, NONE]


def _times(listed: ListedSession | None) -> tuple[str, str]:
    if listed is None:
        return NONE, NONE
    return escape(listed.ttl) or "none", format_duration(listed.lock_delay_s)


def _notes(items: Sequence[Members]) -> list[str]:
    several = len(items) > 1
    own = [(item.settings.name, note) for item in items for note in (*item.notes, *_of_nodes(item))]
    last = FLEET if any(item.nodes for item in items) else NO_SESSION
    return [*(escape(f"{name}: {note}" if several else note) for name, note in own), last]


def _of_nodes(item: Members) -> Iterator[str]:
    for node in item.nodes:
        of, was = node.of, f"{node.role} {node.detail}".strip()
        if of.status == "critical":
            yield f"{of.name} does not answer ({of.says}); since {of.meta.get('at', '?')} it was {was or '?'}"
        elif node.detail:
            yield f"{of.name}: {was}"
        if of.status == "warning":
            yield f"{of.name} is not healthy: {of.says}"
        if not node.role:
            yield f"{of.name} does not tell its part: {of.left_out} of its items did not fit"
