"""Requests to Consul about all nodes: members, sessions, wait, and status --cluster."""

import argparse
import asyncio
from functools import partial

from supervisor.adapters.consul.endpoints import READS_SESSIONS
from supervisor.adapters.consul.members import (
    Cluster,
    SupervisorSession,
    cluster_now,
    consequences,
    supervisor_sessions,
)
from supervisor.adapters.consul.query import LookupFailed, NotReadable, destroy
from supervisor.adapters.consul.wait import has_leader, is_free, wait_until
from supervisor.commands.cli.consul_commands import item_of, load_for, load_item
from supervisor.commands.cli.display.members import (
    ORPHANS,
    cluster_lines,
    member_lines,
    members_json,
    part_of,
    session_lines,
    sessions_json,
)
from supervisor.commands.cli.display.text import escape, wrapped
from supervisor.commands.cli.exit_codes import DONE, NEGATIVE, USAGE
from supervisor.commands.cli.terminal import columns, confirm, fail, run_async
from supervisor.config import Config
from supervisor.config.environment import EVERY_ITEM
from supervisor.core.settings import ItemSettings, SemaphoreSettings

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


def sessions(options: argparse.Namespace) -> int:
    if why := _wrong_options(options):
        return fail(USAGE, why)
    config = load_for(EVERY_ITEM, options.config)
    found = run_async(cluster_now(config.consul, config.items))
    if options.destroy is not None:
        return _destroy(options, config, found)
    shown = [each for each in supervisor_sessions(found) if each.is_orphan or not options.orphans]
    if options.json:
        print(sessions_json(shown, is_complete=not found.is_hidden))
        return DONE
    notes = [] if shown else ["no orphans" if options.orphans else "no sessions of supervisors"]
    notes += [ORPHANS] if any(each.is_orphan for each in shown) else []
    notes += [HIDDEN] if found.is_hidden else []
    lines = session_lines(shown, columns()) if shown else []
    print("\n".join([*lines, *([""] if lines and notes else []), *wrapped(notes, columns())]))
    return DONE


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
