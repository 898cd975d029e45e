"""The daemon's status for a person: one row for each item, and below them warnings and errors.

The functions rely on the shape that the document's version has, and on no value in it, because values come
from Consul and may be anything.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from supervisor import __version__
from supervisor.commands.cli.display.grid import Column, grid
from supervisor.commands.cli.display.text import escape, fit, wrapped
from supervisor.config.formats.json_values import holder_node

RECENT_S = 300.0  # how long an error that is over is still shown
HOLDS, HOLDS_NOT = "*", " "
BOLD, DIM, RED, GREEN, YELLOW = "1", "2", "31", "32", "33"
_BETWEEN = ("losing", "acquiring", "paused", "resting", "ineligible")
_ROLE_COLOURS = {"stuck": RED, **dict.fromkeys(_BETWEEN, YELLOW)}

Item = Mapping[str, Any]
Status = Mapping[str, Any]


def lines(status: Status, columns: int | None, *, colours: bool) -> list[str]:
    """Return the lines of the page, none wider than ``columns``. None: each is as wide as its content."""
    now = datetime.fromisoformat(status["daemon"]["now"])
    items: Sequence[Item] = status["items"]
    rows = [[text(item, now) for text in _CELLS.values()] for item in items]
    head, *body = grid([*_CELLS], rows, None if columns is None else max(0, columns - len(f"{HOLDS} ")))
    page = [
        fit(_summary(status, now), columns),
        "",
        painted(fit(f"{HOLDS_NOT} {head}", columns), DIM, colours),
    ]
    for item, line in zip(items, body, strict=True):
        text = fit(f"{HOLDS if item['holds'] else HOLDS_NOT} {line}", columns)
        colour = _ROLE_COLOURS.get(item["role"], f"{BOLD};{GREEN}" if item["holds"] else "")
        page.append(painted(text, colour, colours))
    notes = list(_notes(status, now, with_errors=_ERROR.title not in head))
    if notes:
        page.append("")
    return page + [
        painted(line, colour, colours) for colour, text in notes for line in wrapped([text], columns)
    ]


def of_item(status: Status, name: str) -> dict[str, Any]:
    """Return the status with only this item. If the daemon does not have it, the status has no item."""
    return {**status, "items": [item for item in status["items"] if item["name"] == name]}


def duration(length_s: float) -> str:
    """Return whole seconds in at most two units: ``4s``, ``3m12s``, ``5h2m``, ``12d3h``."""
    whole = max(0, int(length_s))
    for unit_s, unit, part_s, part in _UNITS:
        if whole >= unit_s:
            return f"{whole // unit_s}{unit}{whole % unit_s // part_s}{part}"
    return f"{whole}s"


_UNITS = ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s"))


def _exact(length_s: float) -> str:
    """Return the duration, with fractions when it is short: ``40ms``, ``3.2s``."""
    if length_s < 1:
        return f"{max(1, round(length_s * 1000))}ms"
    return f"{length_s:.1f}s" if length_s < 10 else duration(length_s)


def painted(text: str, colour: str, colours: bool) -> str:
    """Return the text in this colour, or without a colour if the terminal shows none."""
    return f"\x1b[{colour}m{text}\x1b[0m" if colours and colour and text else text


def _summary(status: Status, now: datetime) -> str:
    daemon, consul = status["daemon"], status["consul"]
    answered = consul["answered_s_ago"]
    silent = "has not answered yet" if answered is None else f"answered {_exact(answered)} ago"
    health = "healthy" if status["healthy"] else "NOT HEALTHY"
    up = duration(_since(daemon["started"], now))
    process = f"pid {daemon['pid']}, version {daemon['version']}"
    text = f"{daemon['node']}: {health}, up {up}, {process}; Consul {consul['address']} {silent}"
    return escape(text + (", REFUSES THE TOKEN" if consul["token_refused"] else ""))


def _notes(status: Status, now: datetime, *, with_errors: bool) -> Iterator[tuple[str, str]]:
    for trouble in status["troubles"]:
        yield RED, escape(f"trouble: {trouble}")
    if (runs := status["daemon"]["version"]) != __version__:
        how = "`systemctl restart consul-supervisor` starts it and keeps what this node holds"
        yield YELLOW, escape(f"warning: version {runs} runs, and {__version__} is installed: {how}")
    for warning in status.get("warnings", ()):  # a daemon of an earlier version does not send them
        yield YELLOW, escape(f"warning: {warning}")
    for item in status["items"]:
        for warning in item["warnings"]:
            yield YELLOW, escape(f"warning: {item['name']}: {warning}")
        if with_errors and _error(item, now) != "-":
            yield "", f"last error: {escape(item['name'])}: {_error(item, now)}"


def _leader(item: Item, now: datetime) -> str:
    holders = item["holders"]
    if since := item.get("leader_unknown_since"):  # a daemon of an earlier version does not send it
        return f"unknown since {datetime.fromisoformat(since):%H:%M:%SZ}{_last(item)}"
    if holders is None:
        return f"-{_last(item)}" if item["leader"] is None else _holder(item["leader"])
    limit = item["effective_limit"] or item["limit"]
    values = ", ".join(_holder(holder["value"] or holder["session"]) for holder in holders)
    return f"{len(holders)} of {limit or '?'}" + (f": {values}" if values else "")


def _last(item: Item) -> str:
    """Return who led last, to be added to a cell. Blank: this node has seen nobody lead."""
    led = item.get("last_leader")  # a daemon of an earlier version does not send it
    return f", last {escape(led['node'])}" if led else ""


def _holder(value: str) -> str:
    return escape(holder_node(value) or value)


def _lease(item: Item, now: datetime) -> str:
    left_s = item["lease_left_s"]
    reset_in_s = item.get("reset_in_s")  # a daemon of an earlier version does not send it
    reset = "" if reset_in_s is None else f", reset in {_exact(reset_in_s)}"
    return ("-" if left_s is None else _exact(left_s)) + reset


def _hook(item: Item, now: datetime) -> str:
    """Return the last hook, with its result first because a truncated cell keeps its beginning."""
    hook = item["last_hook"]
    if hook is None:
        return "-"
    failed = hook["result"] == "failed"
    took = "" if hook["duration_s"] is None else f"{' after' * failed} {_exact(hook['duration_s'])}"
    is_told = failed or ", " in hook["detail"]  # as behind exit 0: what it left running
    detail = f" ({hook['detail']})" if is_told and hook["detail"] else ""
    return escape(f"{'FAILED' if failed else hook['result']} {hook['hook']}{took}{detail}")


def _error(item: Item, now: datetime) -> str:
    """Return the last error, unless it has been over for ``RECENT_S``. The web page has the same limit."""
    error = item["last_error"]
    if error is None:
        return "-"
    over_at = error.get("over_at")  # a daemon of an earlier version does not send it
    if over_at is not None and _since(over_at, now) >= RECENT_S:
        return "-"
    ago = duration(_since(error["at"], now))
    return escape(f"{ago} ago{', over' if over_at else ''}: {error['text']}")


def _since(at: str, now: datetime) -> float:
    """Return the seconds since ``at``. Both times are the daemon's, so that our clock does not matter."""
    return (now - datetime.fromisoformat(at)).total_seconds()


def _role(item: Item) -> str:
    """Return the role, with a pause whose effect begins when the tenure ends."""
    role = escape(item["role"])
    return f"{role}, paused" if item.get("paused") and role != "paused" else role


_ERROR = Column("LAST ERROR", 24, rank=5)
_CELLS: Mapping[Column, Callable[[Item, datetime], str]] = {
    Column("NAME"): lambda item, now: escape(item["name"]),
    Column("KIND", rank=4): lambda item, now: str(item["kind"]),
    Column("ROLE"): lambda item, now: _role(item),
    Column("SINCE", rank=1): lambda item, now: duration(_since(item["since"], now)),
    Column("LEADER", 8, rank=2): _leader,
    Column("LEASE"): _lease,
    Column("LAST HOOK", 12, rank=3): _hook,
    _ERROR: _error,
}
