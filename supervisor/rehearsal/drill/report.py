"""The result of a drill, as text and as JSON."""

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from supervisor.config.formats.durations import format_duration
from supervisor.config.lease_checks import lease_on_record
from supervisor.core.lease import lease_of
from supervisor.core.settings import ItemSettings
from supervisor.rehearsal.drill.promises import ALLOWANCE_S, Played
from supervisor.rehearsal.drill.rehearsal import Drilled, Plan

JSON_VERSION = 1  # of the document's shape; an added field does not change it
WIDTH = 110
NOT_USED = (
    "Consul, token, TLS, http, state_dir and control_socket of the file are not used. A webhook is never "
    "sent, and on_lose_failure and fence never run: recorders stand in their place."
)
RECORDERS = (
    "Hooks, run and candidate_check are recorders that succeed, without the file's env, user, group and cwd."
)
REAL = (
    "Commands of hooks, run and candidate_check are the real ones, with the times that the file gives them."
)


def begin_lines(path: Path, planned: Plan) -> Iterator[str]:
    """Yield what is printed before the drill begins: what it runs, and how long it takes at most."""
    names = ", ".join(item.original.name for item in planned.items)
    yield f"drill of {path}: {names}; at most {format_duration(planned.bound_s)}"
    if planned.left:
        yield f"One item of each for_each is drilled, and {planned.left} more with --all."
    machine, hooks = map(format_duration, (planned.machine_s, planned.bound_s - planned.machine_s))
    slow = f"{machine} if this machine is so busy that supervisors start and stop slowly"
    long = f"{hooks} if every hook takes its timeout and every failover its longest time"
    yield from textwrap.wrap(f"That is {slow}, and {long}. Most drills take a small part of it.", WIDTH)
    yield from textwrap.wrap(f"{REAL if planned.real else RECORDERS} {NOT_USED}", WIDTH)
    yield f"{format_duration(ALLOWANCE_S)} more than promised is allowed for this machine to start a hook."


def item_lines(item: Drilled, speed: float) -> Iterator[str]:
    settings = item.settings
    yield ""
    yield f"{item.original.name}  {settings.kind}"
    if item.changes:
        text = f"divided by {speed:g} as far as the lease allows: {'; '.join(item.changes)}"
        yield from textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")
    if settings.contend:
        yield f"  {_figures(item)}"
    for play in item.played:
        yield from play_lines(play)


def _figures(item: Drilled) -> str:
    """Return the figures of ``check`` for the file and for the drill."""
    pairs = []
    leases = (lease_of(item.original), lease_of(item.settings))
    for what in ("lose_time", "room", "failover"):
        figures = [getattr(lease, f"{what}_s") for lease in leases]
        texts = ["none" if figure is None else format_duration(figure) for figure in figures]
        pairs.append(f"{what} {texts[0]}" + (f" (here {texts[1]})" if texts[1] != texts[0] else ""))
    return f"check promises: {', '.join(pairs)}"


def play_lines(play: Played) -> Iterator[str]:
    yield ""
    if play.skipped:
        yield f"  {play.title}: not played, {play.skipped}"
        return
    yield f"  {play.title}"
    for line in play.lines:
        yield f"  {line.at_s:9.3f} s  {line.node or 'drill':<8}  {line.text}"
    width = max(len(promise.what) for promise in play.promises)
    for promise in play.promises:
        verdict = "kept" if promise.kept else "BROKEN"
        compared = f"promised {promise.promised}, measured {promise.measured}"
        yield f"    {verdict:<6}  {promise.what:<{width}}  {compared}"


def end_line(items: Sequence[Drilled]) -> str:
    promises = [promise for item in items for play in item.played for promise in play.promises]
    broken = sum(not promise.kept for promise in promises)
    verdict = "all kept" if all(item.kept for item in items) else "not every play was played"
    return f"{len(promises)} promises: {f'{broken} broken' if broken else verdict}"


def as_json(path: Path, planned: Plan, items: Sequence[Drilled]) -> str:
    document = {
        "version": JSON_VERSION,
        "path": str(path),
        "speed": planned.speed,
        "hooks": "real" if planned.real else "recorders",
        "bound_s": planned.bound_s,
        "allowance_s": ALLOWANCE_S,
        "kept": all(item.kept for item in items),
        "items": [_item(item) for item in items],
    }
    return json.dumps(document, indent=2)


def _item(item: Drilled) -> dict[str, object]:
    settings = item.settings
    figures = {
        name: _lease(each) if each.contend else None
        for name, each in (("lease_of_file", item.original), ("lease", settings))
    }
    return {
        "name": settings.name,
        "kind": settings.kind,
        "changes": list(item.changes),
        **figures,
        "kept": item.kept,
        "plays": [_played(play) for play in item.played],
    }


def _lease(settings: ItemSettings) -> dict[str, object]:
    figures = asdict(lease_on_record(settings))
    return {"lock_delay_s": figures.pop("lockout_s"), **figures}


def _played(play: Played) -> dict[str, object]:
    return {
        "play": play.play,
        "skipped": play.skipped or None,
        "kept": play.kept,
        "promises": [asdict(promise) for promise in play.promises],
        "events": [asdict(line) for line in play.lines],
    }
