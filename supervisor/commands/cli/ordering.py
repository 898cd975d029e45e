"""Commands that order something in Consul for the whole fleet, whose daemons follow it.

``pause`` and ``resume`` with --everywhere, and ``step-down`` on a node that does not hold the election.
"""

import argparse
import asyncio
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from supervisor.adapters.consul.candidates import NoTarget, target_of
from supervisor.adapters.consul.fleet_requests import ReadOrder, WriteOrder
from supervisor.adapters.consul.members import Members, Part, cluster_now
from supervisor.adapters.consul.query import LOOKUP_S, LookupFailed, OneOffClient, key_view
from supervisor.commands.cli.consul_commands import fleet_of, item_of, load_for
from supervisor.commands.cli.display.text import escape
from supervisor.commands.cli.exit_codes import DONE, NEGATIVE
from supervisor.commands.cli.terminal import fail, progress, run_async
from supervisor.config import Config, ConfigError
from supervisor.config.environment import EVERY_ITEM
from supervisor.config.formats.json_values import holder_name
from supervisor.core.actions import Role
from supervisor.core.lock.handover import HANDOVER_S
from supervisor.core.outcomes import Done, KeyView, LostRace, Unknown
from supervisor.core.settings import ItemSettings
from supervisor.daemon.fleet.order import Order, encoded, order_of, pause_key, step_down_key
from supervisor.errors import NotPossible
from supervisor.reporting.control.protocol import DONE_S, NOTE_CHARS_MAX, TAKEN_OVER_S
from supervisor.reporting.control.users import user_name
from supervisor.reporting.telemetry.formatting import when

FOLLOWED_S = 30.0  # in which a daemon follows an order, unless it is cut off or does not know of it
LOOK_EVERY_S = 0.5
SHOWN_S = 5.0  # an order is seen within a second, and told within two more


def everywhere(options: argparse.Namespace) -> int:
    config = load_for(options.name or EVERY_ITEM, options.config)
    items = config.items if options.name is None else (item_of(config, options.config, options.name),)
    deed = f"{options.command} {options.name or 'all'} everywhere"
    fleet = fleet_of(config, options.config, deed, "no daemon follows orders")
    return run_async(_everywhere(options, config, fleet.prefix, items))


async def _everywhere(
    options: argparse.Namespace, config: Config, prefix: str, items: Sequence[ItemSettings]
) -> int:
    code, resumes, done = DONE, options.command == "resume", dict[str, tuple[Order | None, str]]()
    async with OneOffClient(config.consul) as consul:
        for item in items:
            key = pause_key(prefix, item.name)
            order = None if resumes else _order(item, options.note, options.pause_s)
            try:
                former = await _write(consul, prefix, key, order)
            except NotPossible as error:
                code = fail(NEGATIVE, f"cannot {options.command} {item.name} everywhere: {error}")
                continue
            done[item.name] = order, f"{item.name}: {_done(order, former)}"
    behind = await _behind(config, [item for item in items if item.name in done], done)
    for name, (_, line) in done.items():
        if behind[name]:
            code = fail(NEGATIVE, f"{line}; not followed within {SHOWN_S:g} s by {behind[name]}")
        elif not options.quiet:
            print(escape(line), flush=True)
    return code


async def _behind(
    config: Config, items: Sequence[ItemSettings], orders: Mapping[str, tuple[Order | None, str]]
) -> dict[str, str]:
    """Return by item who does not show that it follows, once all do or SHOWN_S is over."""
    behind, began, service = dict[str, str](), time.monotonic(), config.fleet.service if config.fleet else ""
    while True:
        try:
            for each in (await cluster_now(config.consul, items, service)).items:
                behind[each.settings.name] = ", ".join(_not_following(each, orders[each.settings.name][0]))
        except LookupFailed as error:
            behind |= {item.name: f"nodes that Consul does not show ({error})" for item in items}
        items = [item for item in items if behind[item.name]]
        if not items or time.monotonic() - began > SHOWN_S:
            return behind
        await asyncio.sleep(LOOK_EVERY_S)


def _not_following(members: Members, order: Order | None) -> Iterator[str]:
    """Yield who does not follow the order. None: it was taken back, and concerns nobody without fleet."""
    told, known = order.told if order else "everywhere by ", []
    for node in members.nodes:
        known.append(node.member)
        if not node.role:
            yield f"{node.of.name} (it cannot tell: Consul's catalog has no room for all of its items)"
        elif (told in node.detail) is not bool(order) and (node.member or node.of.status != "critical"):
            yield node.of.name
    is_sure = members.is_complete and bool(members.nodes)
    without = "without fleet" if is_sure else "perhaps without fleet"
    for each in members.members if order else ():
        if each not in known and each.part is not Part.VANISHED:
            yield f"{each.node or each.consul_node or 'a node'} (session {each.session}, {without})"
    yield from () if is_sure else (f"nodes that are not shown ({note})" for note in members.notes)


def _done(order: Order | None, former: Order | str | None) -> str:
    of = f" of {former.who} of {former.at}" if isinstance(former, Order) else ""
    if order is None:
        return f"the pause everywhere{of} has ended" if former else "it was not paused everywhere"
    lasts = "until `resume --everywhere`" if order.for_s is None else f"for {order.for_s:g} s"
    replaces = f", in place of the order{of}" if former else ""
    return f"paused everywhere {lasts}{replaces}; who holds goes on until step-down or a loss"


def _order(item: ItemSettings, why: str, for_s: float | None, to: str = "") -> Order:
    who = f"{user_name(os.getuid()) or os.getuid()}@{socket.gethostname()}"
    return Order(item.name, who[:NOTE_CHARS_MAX], when(time.time()), why, for_s, to, item.key)


async def _write(consul: OneOffClient, prefix: str, key: str, order: Order | None) -> Order | str | None:
    """Write this order into the key, or delete it, and return what was there. None: nothing was.

    Raises NotPossible when another operator changes the key meanwhile, and LookupFailed.
    """
    shown = await _shown(consul, prefix, key)
    former = order_of(shown) if shown.present else None
    if former is not None or order is not None:
        await _put(consul, prefix, key, None if order is None else encoded(order), shown.modify_index)
    return former


async def _shown(consul: OneOffClient, prefix: str, key: str) -> KeyView:
    return key_view(key, await consul.ask(ReadOrder("", 0.0, LOOKUP_S, key, prefix)))


async def _put(consul: OneOffClient, prefix: str, key: str, value: bytes | None, index: int) -> None:
    """Write or delete the key if its index is still this one.

    A write without a good answer may have been applied, so the key tells. Raises NotPossible or LookupFailed.
    """
    try:
        done = await consul.ask(WriteOrder("", 0.0, LOOKUP_S, key, prefix, value, index))
    except LookupFailed as error:
        done = Unknown(str(error))
    if isinstance(done, Done):
        return
    shown = await _shown(consul, prefix, key)
    if (shown.value if shown.present else None) == value:
        return
    if isinstance(done, LostRace):
        raise NotPossible("another operator has changed it at this moment; look at `status`, and try again")
    raise LookupFailed(f"cannot write {key}: Consul answers {getattr(done, 'why', done)}")


async def _withdraw(consul: OneOffClient, prefix: str, key: str, order: Order) -> None:
    """Delete the key of this order, unless another operator has written it anew. Raises LookupFailed."""
    shown = await _shown(consul, prefix, key)
    if shown.present and shown.value == encoded(order):
        await consul.ask(WriteOrder("", 0.0, LOOKUP_S, key, prefix, None, shown.modify_index))


# --- step-down from any node -----------------------------------------------------------------------


class _Holder(NamedTuple):
    """Who holds an election now."""

    session: str  # blank: nobody
    name: str


def step_down(options: argparse.Namespace, refused: str) -> int | None:
    """Order the step-down of the node that holds the election, and return the exit code once it is done.

    None: nobody can order it by this configuration, because it has no fleet.
    refused: why the daemon of this node cannot do it.
    """
    try:
        config = load_for(options.name, options.config)
    except ConfigError:
        return None
    if config.fleet is None:
        return None
    item = item_of(config, options.config, options.name)
    if item.kind != "election":
        return fail(NEGATIVE, f"{refused}; a slot is given up on the node that has it")
    try:
        line = run_async(_step_down(options, config, config.fleet.prefix, item))
    except (NotPossible, NoTarget) as error:
        return fail(NEGATIVE, f"cannot step-down {item.name}: {error}")
    if not options.quiet:
        print(escape(line))
    return DONE


async def _step_down(options: argparse.Namespace, config: Config, prefix: str, item: ItemSettings) -> str:
    async with OneOffClient(config.consul) as consul:
        holder, to = await _holder(consul, item), ""
        if not holder.session:
            raise NotPossible("nobody holds it")
        seen = await consul.sessions()
        if options.to:
            present = await consul.present(config.fleet.service) if config.fleet else ()
            to = target_of(options.to, item, seen, present, holder, socket.gethostname()).id
        order = _order(item, options.note, options.rest_s, to)
        key = step_down_key(prefix, holder.session)
        try:
            await _write(consul, prefix, key, order)
            if not options.quiet:
                progress(escape(f"{item.name}: {holder.name} is asked to step down"))
            return await _taken_over(consul, config, item, holder, to, {each.id for each in seen.sessions})
        finally:  # a key that stays means nothing once the session has ended
            with suppress(LookupFailed):
                await _withdraw(consul, prefix, key, order)


async def _taken_over(
    consul: OneOffClient, config: Config, item: ItemSettings, former: _Holder, to: str, before: set[str]
) -> str:
    """Wait until another node holds the key, or the one that is to, and return who. Raises NotPossible."""
    began = free_since = time.monotonic()
    within_s = TAKEN_OVER_S + HANDOVER_S if to else TAKEN_OVER_S
    while True:
        holder, now = await _holder(consul, item), time.monotonic()
        if holder.session not in ("", former.session):
            may_be_same = former.session in before and holder.session not in before  # by its next session
            if holder.session == to or (not to and not (may_be_same and holder.name == former.name)):
                return f"{item.name}: {holder.name} holds it, {now - began:.1f} s after the order"
            raise NotPossible(f"{former.name} has released it, and {holder.name} holds it now")
        free_since = now if holder.session else free_since
        if now - free_since > within_s:
            gone = f"{former.name} does not hold it any more"
            raise NotPossible(f"{gone}, but nobody took over within {within_s:g} s")
        if holder.session and now - began > DONE_S:
            raise NotPossible(f"{former.name} still holds it; see `status` there")
        roles = await _roles(consul, config, item) if holder.session and now - began > SHOWN_S else None
        if roles and Role.STUCK in roles:
            remedy = f"`consul-supervisor recover {item.name}` there, once nothing of it acts"
            raise NotPossible(f"{former.name} is stuck, so it keeps the lock: {remedy}")
        if roles is not None and Role.LOSING not in roles and now - began > FOLLOWED_S:
            unknown = "is it up, does its file have fleet, and may its token read the orders?"
            raise NotPossible(f"{former.name} has not followed the order within {FOLLOWED_S:g} s: {unknown}")
        await asyncio.sleep(LOOK_EVERY_S)


async def _holder(consul: OneOffClient, item: ItemSettings) -> _Holder:
    view = await consul.item(item)
    if not isinstance(view, KeyView) or not view.session:
        return _Holder("", "")
    name = holder_name(view.value)
    nodes = {each.id: each.node for each in (await consul.sessions()).sessions} if not name else {}
    return _Holder(view.session, name or nodes.get(view.session) or view.session)


async def _roles(consul: OneOffClient, config: Config, item: ItemSettings) -> set[str]:
    """Return the roles of all nodes, as far as Consul's catalog shows them; else one may be losing."""
    present = await consul.present(config.fleet.service) if config.fleet else ""
    if isinstance(present, str):
        return {Role.LOSING}
    return {each.parts.get(item.name, ("",))[0] for each in present}
