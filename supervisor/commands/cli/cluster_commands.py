"""Requests to Consul about all nodes: members, history, sessions, wait, and status --cluster."""

import argparse
import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial

from supervisor.adapters.consul.endpoints import READS_SESSIONS
from supervisor.adapters.consul.fleet_requests import history_key
from supervisor.adapters.consul.members import (
    Cluster,
    SupervisorSession,
    cluster_now,
    consequences,
    supervisor_sessions,
)
from supervisor.adapters.consul.query import LookupFailed, NotReadable, destroy, key_now
from supervisor.adapters.consul.wait import has_leader, is_free, wait_until
from supervisor.commands.cli.consul_commands import fleet_of, item_of, load_for, load_item
from supervisor.commands.cli.display.grid import Column, grid
from supervisor.commands.cli.display.members import (
    JSON_VERSION,
    NONE,
    ORPHANS,
    cluster_lines,
    member_lines,
    members_json,
    part_of,
    session_lines,
    sessions_json,
)
from supervisor.commands.cli.display.table import duration
from supervisor.commands.cli.display.text import escape, wrapped
from supervisor.commands.cli.exit_codes import DONE, NEGATIVE, USAGE
from supervisor.commands.cli.terminal import columns, confirm, fail, run_async
from supervisor.config import Config
from supervisor.config.environment import EVERY_ITEM
from supervisor.core.settings import ItemSettings, SemaphoreSettings
from supervisor.daemon.fleet.tenures import FIELDS, ForeignHistory, Tenure, document_of
from supervisor.reporting.control import fetch

HISTORY = (
    Column("TOKEN", rank=2),
    Column("NODE", 8),
    Column("FROM"),
    Column("TO", rank=1),
    Column("LASTED", rank=3),
    Column("WHY", 12),
    Column("BY", 8, rank=4),
)
GUARDED = {  # what the next node did before it acted, by how its guard has ended
    "released": "key released",
    "said": "{} was told its end",
    "fenced": "{} fenced it",
    "waited": "{} waited for its lease",
    "confirmed": "{} had confirm-off",
}
ID_CHARS = 36  # of a session, with which the id of a transition begins
CANDIDATE_EVERY_S = 1.0
HIDDEN = f"Consul does not show all sessions to this token, which needs: {READS_SESSIONS}"


def members(options: argparse.Namespace) -> int:
    config, item = load_item(options.config, options.name)
    (found,) = run_async(cluster_now(config.consul, [item], _service(config))).items
    print(members_json([found]) if options.json else "\n".join(member_lines(found, columns())))
    if not found.is_empty:
        return DONE
    known = "" if found.is_complete else ", as far as this token may read"
    return fail(NEGATIVE, f"nobody takes part in {options.name}{known}")


def cluster(options: argparse.Namespace) -> int:
    config = load_for(options.name or EVERY_ITEM, options.config)
    items = config.items if options.name is None else [item_of(config, options.config, options.name)]
    found = run_async(cluster_now(config.consul, items, _service(config))).items
    print(members_json(found) if options.json else "\n".join(cluster_lines(found, columns())))
    return DONE


def _service(config: Config) -> str | None:
    return None if config.fleet is None else config.fleet.service


def history(options: argparse.Namespace) -> int:
    name, (config, item) = options.name, load_item(options.config, options.name, "election")
    if item.kind != "election":
        return fail(USAGE, f"cannot tell the history of {name}: it is kept of elections, not of semaphores")
    fleet = fleet_of(config, options.config, f"tell the history of {name}", "none is kept")
    key = history_key(fleet.prefix, name)
    try:
        document = document_of(kept := run_async(key_now(config.consul, key)))
    except ForeignHistory as error:
        return fail(NEGATIVE, f"cannot tell the history of {name}: {key}: {error}")
    tenures = document["tenures"][: options.limit]
    if options.json:
        shown = [{field: each.get(field) for field in FIELDS} for each in tenures]
        about = {"name": name, "key": key, "count": document["count"]}
        print(json.dumps({"version": JSON_VERSION, **about, "tenures": shown}, indent=2))
    elif tenures:
        print("\n".join(grid(HISTORY, _rows(tenures), columns())))
    why = f"{key} {'has none' if kept.present else 'does not exist'}"
    return DONE if tenures else fail(NEGATIVE, f"no tenure of {name} is known: {why}")


def _guarded(tenure: Tenure) -> str:
    """Return what this node did before it acted, and by which method of its fence, if it has several."""
    end, _, method = str(tenure.get("guard")).partition(" ")
    return " ".join(filter(None, (GUARDED.get(end, "").format(tenure["node"]), method)))


def _rows(tenures: Sequence[Tenure]) -> list[list[str]]:
    """Return a row for each tenure. The next node, if it had a guard, says how it ended as well."""
    guards = [None, *(_guarded(each) for each in tenures)]
    return [
        [
            str(each["token"]),
            escape(each["node"]),
            escape(each["from"]),
            escape(each.get("to") or NONE),
            _lasted(each),
            escape(", ".join(filter(None, (each.get("why"), guard))) or NONE),
            escape(": ".join(filter(None, (each.get("by"), each.get("note")))) or NONE),
        ]
        for each, guard in zip(tenures, guards, strict=False)
    ]


def _lasted(tenure: Tenure) -> str:
    try:
        ends = [datetime.fromisoformat(tenure.get(name, "")) for name in ("from", "to")]
        return duration((ends[1] - ends[0]).total_seconds())
    except (TypeError, ValueError):  # no end yet, or another program's text
        return NONE


def sessions(options: argparse.Namespace) -> int:
    if why := _wrong_options(options):
        return fail(USAGE, why)
    config = load_for(EVERY_ITEM, options.config)
    found = run_async(cluster_now(config.consul, config.items))
    if options.destroy is not None:
        return _destroy(options, config, found)
    known = supervisor_sessions(found, _former(config))
    shown = [each for each in known if each.is_orphan or not options.orphans]
    if options.json:
        print(sessions_json(shown, is_complete=not found.is_hidden))
        return DONE
    notes = [] if shown else ["no orphans" if options.orphans else "no sessions of supervisors"]
    notes += [ORPHANS] if any(each.is_orphan for each in shown) else []
    notes += [HIDDEN] if found.is_hidden else []
    lines = session_lines(shown, columns()) if shown else []
    print("\n".join([*lines, *([""] if lines and notes else []), *wrapped(notes, columns())]))
    return DONE


def _former(config: Config) -> set[str]:
    """Return the sessions of earlier tenures of this node. Empty also where its daemon does not answer."""
    with suppress(fetch.DaemonUnreachable):
        items = fetch.status(config.control.path)[1]["items"] if config.control else []
        former = {each["transition"][:ID_CHARS] for item in items for each in item["transitions"]}
        return former - {item["session"] for item in items}
    return set()


def _wrong_options(options: argparse.Namespace) -> str:
    """Return why these options cannot be used together. Blank: they can."""
    if options.destroy is None:
        return "cannot use --yes alone: it is for destroy ID" if options.yes else ""
    if options.session is None:
        return "cannot destroy a session without its ID: sessions lists them"
    return "cannot use --orphans or --json with destroy" if options.orphans or options.json else ""


def _destroy(options: argparse.Namespace, config: Config, found: Cluster) -> int:
    session = _session(found, options.session)
    if session is None:
        known = any(each.id == options.session for each in found.sessions.sessions)
        why = "another program made it" if known else "Consul shows no such session"
        return fail(NEGATIVE, f"cannot destroy {options.session}: {why}")
    one = session.listed
    print(escape(f"session {one.id} of node {one.node}, named {one.name}: {part_of(session)}"))
    for line in consequences(session, found.items):
        print(escape(line))
    if not options.yes:
        refused = f"session {one.id} was not destroyed"
        if code := confirm("destroy it", refused):
            return code
        now = _session(run_async(cluster_now(config.consul, config.items)), one.id)
        if now is None or now.parts != session.parts:
            return fail(NEGATIVE, f"{refused}: what it holds has changed meanwhile")
    run_async(destroy(config.consul, one.id))
    print("destroyed")
    return DONE


def _session(found: Cluster, session: str) -> SupervisorSession | None:
    return next((each for each in supervisor_sessions(found) if each.listed.id == session), None)


def wait(options: argparse.Namespace) -> int:
    config, item = load_item(options.config, options.name)
    limit = item.limit if isinstance(item, SemaphoreSettings) else 1
    if options.state == "leader" and item.kind != "election":
        return fail(USAGE, f"cannot wait for a leader of {options.name}: a semaphore has holders, not one")
    if options.state == "candidate":
        if run_async(_has_candidate(config, item, options.timeout_s)):
            return DONE
        return fail(NEGATIVE, f"{options.name}: no node waits for it, also after {options.timeout_s:g} s")
    condition = has_leader if options.state == "leader" else partial(is_free, limit=limit)
    met = run_async(wait_until(config.consul, item, condition, options.timeout_s))
    what = "nobody holds" if options.state == "leader" else "it is not free"
    return DONE if met else fail(NEGATIVE, f"{options.name}: {what}, also after {options.timeout_s:g} s")


async def _has_candidate(config: Config, item: ItemSettings, timeout_s: float) -> bool:
    """Return whether a node waits for the item that may take over without a word, within the time.

    The list of sessions is read again and again, because no query waits for the name of a session. Raises as
    ``cluster_now`` does, at the end of the time where Consul did not answer.
    """
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout_s
    while True:
        left_s = deadline - clock()
        try:
            [members] = (await cluster_now(config.consul, [item], _service(config))).items
        except LookupFailed as error:
            if left_s <= 0.0 or isinstance(error, NotReadable):
                raise
        else:
            if members.heirs or left_s <= 0.0:
                return bool(members.heirs)
        await asyncio.sleep(max(0.0, min(CANDIDATE_EVERY_S, left_s)))
