"""The formulas and tables in ``sizing.md``, made from ``bench/demand.py``.

    python -m docs.sizing            prints them
    python -m docs.sizing --write    puts them into sizing.md

The figures of `consul lock` come from ``bench/measured.md``. A test runs this module and compares.
"""

import re
import sys
from collections.abc import Iterator
from math import log
from pathlib import Path

from bench import demand
from bench.demand import Fleet, Node
from supervisor.core.jitter import JITTER_MAX
from supervisor.core.lease import lease_of
from supervisor.core.settings import (
    Command,
    ElectionSettings,
    Hook,
    SemaphoreSettings,
    SessionSettings,
)

PAGE = Path(__file__).resolve().parent / "sizing.md"
MEASURED = PAGE.parents[1] / "bench" / "measured.md"
BLOCK = re.compile(r"(<!-- `python -m docs.sizing` writes the (\w+) -->\n).*?(<!-- to here -->\n)", re.DOTALL)
PACE = -log(1 - JITTER_MAX) / JITTER_MAX
CANDIDATES = 5  # of an election, where not all nodes contend for it
GROUP = 20  # nodes that share a semaphore
LIMIT = 3


def election(ttl_s: float, lock_delay_s: float, confirm_every_s: float | None = None) -> ElectionSettings:
    """Return an election with on_acquire and on_lose of the default timeouts."""
    call = Command(("true",))
    return ElectionSettings(
        name="app",
        key="service/app/leader",
        value=b"",
        session=SessionSettings("app", ttl_s, lock_delay_s),
        on_acquire=(Hook("on_acquire[0]", call, 30.0),),
        on_lose=(Hook("on_lose[0]", call, 5.0),),
        confirm_every_s=confirm_every_s,
    )


def semaphore() -> SemaphoreSettings:
    """Return a semaphore with the default session."""
    key, session = "service/app/.lock", SessionSettings("app")
    return SemaphoreSettings(name="app", key=key, value=b"", session=session, limit=LIMIT)


DEFAULTS, SLOW = election(10.0, 30.0), election(60.0, 60.0)
SETTINGS = {
    "defaults: ttl 10s, lock_delay 30s": DEFAULTS,
    "quick: ttl 10s, lock_delay 13s, confirm_every 1s": election(10.0, 13.0, 1.0),
    "quickest: ttl 3s, lock_delay 13s, confirm_every 1s": election(3.0, 13.0, 1.0),
    "ttl 15s, lock_delay 15s": election(15.0, 15.0),
    "ttl 30s, lock_delay 60s": election(30.0, 60.0),
    "ttl 60s, lock_delay 60s": SLOW,
}
SPREAD = f"{CANDIDATES} candidates each"
FLEETS = {
    f"1 election, {SPREAD}": [Fleet(DEFAULTS, n, 1, CANDIDATES) for n in (10, 100, 1_000, 10_000)],
    f"1 election, ttl and lock_delay 60s, {SPREAD}": [Fleet(SLOW, n, 1, CANDIDATES) for n in (1_000, 10_000)],
    "1 election, all nodes are candidates": [Fleet(DEFAULTS, n, 1, n) for n in (100, 1_000, 10_000)],
    f"100 elections, {SPREAD}": [Fleet(DEFAULTS, n, 100, CANDIDATES) for n in (10, 100, 1_000, 10_000)],
    f"1,000 elections, ttl and lock_delay 60s, {SPREAD}": [
        Fleet(SLOW, n, 1_000, CANDIDATES) for n in (10, 100)
    ],
    f"1 semaphore, limit {LIMIT}, {GROUP} candidates each": [
        Fleet(semaphore(), n, 1, GROUP) for n in (100, 1_000, 10_000)
    ],
    f"1 semaphore, limit {LIMIT}, all nodes are candidates": [
        Fleet(semaphore(), n, 1, n) for n in (100, 300, 1_000, 10_000)
    ],
}


def formulas() -> str:
    """Return the sums of a fleet at rest, with the constants of the product."""
    watch, pace = f"{demand.WATCH_S:.3g}", f"{PACE:.3f}"
    return (
        f"    renewals a second    = {pace} × (3 × holders + 2 × waiters) / ttl\n"
        f"    reads a second       = {pace} × holders / interval\n"
        f"    watches a second     = (holders + waiters) / {watch} s\n"
        f"    consistent a second  = reads a second + holders / {watch} s\n"
        "    writes a second      = 0\n"
        "    sessions             = holders + waiters\n"
        "    waiting queries      = holders + waiters\n"
    )


def contenders() -> str:
    """Return the requests a minute of one contender, beside those of `consul lock`."""
    lines = [
        _row(
            "session",
            "interval",
            "holder: renewals",
            "reads",
            "watches",
            "all",
            "waiter: renewals",
            "watches",
            "all",
        )
    ]
    lines.append("|---|" + "---:|" * 8 + "\n")
    for name, settings in SETTINGS.items():
        holder, waiter = (demand.of_node(Node(settings, 1, CANDIDATES, held)) for held in (1.0, 0.0))
        rates = (holder.renewals, holder.reads, holder.watches, holder.requests)
        rates = (*rates, waiter.renewals, waiter.watches, waiter.requests)
        interval = f"{lease_of(settings).interval_s:.1f} s"
        lines.append(_row(name, interval, *(f"{60 * rate:.1f}" for rate in rates)))
    theirs = [_measured(f"consul lock, {role}") for role in ("holder", "waiter")]
    lines.append(_row("`consul lock`, ttl 15s, measured", "", "", "", "", theirs[0], "", "", theirs[1]))
    return "".join(lines)


def rest() -> str:
    """Return the load at rest of typical fleets."""
    head = (
        "a node's file",
        "nodes",
        "sessions",
        "requests/s",
        "renewals/s",
        "consistent/s",
        "waiting queries",
    )
    lines = [_row(*head, "connections a node", "HTTP"), "|---|" + "---:|" * 8 + "\n"]
    for name, fleet in _fleets():
        load = demand.at_rest(fleet)
        counts = (load.sessions, load.requests, load.renewals, load.consistent, load.queries)
        connections = f"{load.connections / fleet.nodes:.0f}"
        cells = (f"{fleet.nodes:,}", *map(_count, counts), connections, f"{_size(load.bytes)}/s")
        lines.append(_row(name, *cells))
    return "".join(lines)


def events() -> str:
    """Return what events cost these fleets."""
    head = ("a node's file", "nodes", "one hand-over: writes", "answers", "one crash: writes")
    last = ("all start: writes", "answers", "no leader: requests/s")
    lines = [_row(*head, *last), "|---|" + "---:|" * 7 + "\n"]
    for name, fleet in _fleets():
        begun = demand.start(fleet)
        listed = demand.listed_by(fleet.node)
        handed = demand.hand_over(fleet.settings, fleet.candidates, listed)
        crashed = demand.crash(fleet.settings, fleet.candidates)
        cells = (_writes(handed), _size(handed.bytes), _writes(crashed), _writes(begun), _size(begun.bytes))
        lines.append(_row(name, f"{fleet.nodes:,}", *cells, _count(sum(demand.outage(fleet)))))
    return "".join(lines)


BLOCKS = {"formulas": formulas, "contenders": contenders, "rest": rest, "events": events}


def page(text: str) -> str:
    """Return the text of ``sizing.md`` with the formulas and tables of now."""
    return BLOCK.sub(lambda block: f"{block[1]}\n{BLOCKS[block[2]]()}\n{block[3]}", text)


def _fleets() -> Iterator[tuple[str, Fleet]]:
    for name, fleets in FLEETS.items():
        for fleet in fleets:
            yield name if fleet is fleets[0] else "", fleet


def _measured(figure: str) -> str:
    """Return the value of a figure in ``bench/measured.md``."""
    found = re.search(rf"^\| [^|]*\| {re.escape(figure)} \| ([0-9.]+) \|", MEASURED.read_text(), re.MULTILINE)
    assert found is not None, f"measured.md has no figure {figure}"
    return f"{float(found[1]):.1f}"


def _row(*cells: str) -> str:
    return "".join(f"| {cell} " if cell else "| " for cell in cells) + "|\n"


def _count(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def _writes(event: demand.Event) -> str:
    least, most = event.writes, event.writes + event.lost
    return f"{least:,.0f}" if least == most else f"{least:,.0f} to {most:,.0f}"


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        sys.stdout.write("\n".join(make() for make in BLOCKS.values()))
