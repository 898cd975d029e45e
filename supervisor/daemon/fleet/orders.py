"""Follows what an operator orders for the whole fleet: one blocking query on all orders, which are states.

An order only withholds tries, or asks for the step-down that the operator could have asked for on the node.
Each node counts the time of a pause from when it first saw that order, whatever the clocks say, and keeps
that on record. While Consul does not answer, and where it does not show an order that may still be there,
what was seen last counts. After a silence or a standstill the orders are read before anything is tried.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from random import uniform

from supervisor.adapters.consul.fleet_requests import ReadOrder, WriteOrder, orders_folder
from supervisor.adapters.consul.shared.listing import Listing
from supervisor.adapters.consul.shared.query import ListQuery
from supervisor.adapters.runtime.background import Background
from supervisor.config import Config
from supervisor.core.actions import Action, RoleChanged
from supervisor.core.events import Answered, ConfigLoaded, Event, OrderSeen, Stalled, StepDownAsked
from supervisor.core.lock.base import WAIT_S, WATCH_S
from supervisor.core.outcomes import Denied, KeyView, Unknown
from supervisor.core.times import NEVER
from supervisor.daemon.fleet.order import (
    Order,
    Orders,
    Seen,
    kept_of,
    may_follow,
    orders_of,
    pause_key,
    seen_in,
    seen_of,
    step_down_key,
)
from supervisor.daemon.shared import Shared
from supervisor.reporting.control.protocol import REST_S, REST_S_MAX

LOOK_EVERY_S = 60.0  # between two looks whether the token may read the orders, while there are none
START_RETRY_S = 0.5  # until the orders are known, because nothing is tried before
UNANSWERED_MAX = 5  # queries in a row
HANGS_S = 1.0  # a query for what is there takes milliseconds
ELSEWHERE = "it is about another key than that of this file, so give each fleet a prefix of its own"
LATE = "it is over, by its time or because it was taken back"
NEWS_S = 0.05  # from an answer with news to the next query
PACE_S = 1.0  # from one without: while there are no orders, Consul answers at each change of any key
RETRY_S = (5.0, 120.0)  # the first pause after a failure, and the longest
READ_S = 10.0  # Consul holds a request for 7 s while it has no leader
TIMER_S_MAX = 60.0  # because a clock may be set


class FollowedOrders:
    """The orders of one fleet, as one node follows them."""

    def __init__(self, config: Config, shared: Shared, kept: bytes, keep: Callable[[bytes], None]) -> None:
        """Begin with what an earlier process has kept. ``keep``: keeps it for the next one."""
        self._shared, self._keep = shared, keep
        self._told = shared.history.fleet  # what status says of the orders
        self._prefix = config.fleet.prefix if config.fleet else ""  # blank: there are no orders
        self._seen = seen_in(kept)
        self._in_force: dict[str, Seen] = {}  # by item: the pause that the log has told of
        self._step_downs: Mapping[str, Order] = {}  # by session
        self._stepped_down = set[str]()  # the sessions of this node that have followed one
        self._is_known = False  # Consul has answered the newest query, or refuses it
        self._unanswered = 0  # queries in a row, while Consul answers others
        self._answers = asyncio.Event()  # Consul answers, so that a query that had no answer is due again
        self._asked_at = inf  # when the query under way began
        self._looks_at = -inf  # when to look next whether the token may read the orders
        self._timer: asyncio.TimerHandle | None = None
        self._background = Background(shared.report)

    def begin(self) -> None:
        """Read the orders of this fleet, in place of a query that is under way."""
        self._background.cancel()
        if self._prefix:
            self._background.start(self._run(self._prefix))

    def follow(self, config: Config) -> None:
        former, self._prefix = self._prefix, config.fleet.prefix if config.fleet else ""
        if former != self._prefix:
            self._step_downs, self._is_known, self._looks_at = {}, False, -inf
            self._told.orders_fault, self._told.foreign_orders = "", {}
            self.begin()

    @property
    def _pauses(self) -> dict[str, Seen]:
        """The pauses of this fleet by item, as far as they were not taken back."""
        ours = ("", self._prefix) if self._prefix else ()
        return {each.order.item: each for each in self._seen if each.prefix in ours and not each.gone}

    def on_step(self, event: Event, actions: Sequence[Action]) -> None:
        """Look again whether an order concerns what a step has changed."""
        soon = asyncio.get_running_loop().call_soon
        if isinstance(event, Answered) and self._prefix and event.of_leader and not self._is_known:
            soon(self._ask_again)
        silent = isinstance(event, Answered) and type(event.outcome) is Unknown and self._is_known
        if silent or isinstance(event, Stalled):
            soon(self._read_anew)
        elif isinstance(event, ConfigLoaded):
            soon(self._settle)
        elif self._step_downs and any(isinstance(action, RoleChanged) for action in actions):
            soon(self._step_down)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._background.cancel()

    # --- reading ---------------------------------------------------------------------------------

    async def _run(self, prefix: str) -> None:
        index, shown, retry_s, silent_s = 0, Orders({}, {}, {}), RETRY_S[0], START_RETRY_S
        while True:
            self._asked_at = began = self._shared.clock()
            timeout_s = WATCH_S if index else READ_S
            query = ListQuery(orders_folder(prefix), index, WAIT_S, consistent=not index, timeout_s=timeout_s)
            answer = await self._shared.client.list_keys(query)
            self._asked_at = inf
            former, index, pause_s, fault = index, 0, RETRY_S[0], str(getattr(answer, "why", ""))
            if isinstance(answer, Unknown) and not fault.startswith("4"):
                fault = f"Consul does not answer at this moment, so those that were read last count ({fault})"
            if isinstance(answer, Listing):
                orders = orders_of(answer, prefix)
                fault = await self._take(orders, prefix)
                if not fault:
                    index = answer.index if answer.index >= former else 0
                    pause_s, retry_s = PACE_S if former and orders == shown else NEWS_S, RETRY_S[0]
                shown = orders
            elif answer is None:
                rule = f'key_prefix "{orders_folder(prefix)}" {{ policy = "list" }}'
                fault = f"Consul refuses the list, or it is too large; where it has key_list_policy: {rule}"
            if not isinstance(answer, Unknown):
                self._unanswered = 0
            self._is_known = not isinstance(answer, Unknown) or self._goes_without(began)
            self._told.orders_fault = fault
            self._shared.log.noted("orders-failed", "", fault)
            if not self._is_known:
                self._doubt()
                pause_s, silent_s = uniform(0.5, 1.0) * silent_s, min(2 * silent_s, RETRY_S[0])
            else:
                self._settle()
                silent_s = START_RETRY_S
                if fault:
                    pause_s, retry_s = uniform(0.5, 1.0) * retry_s, min(2 * retry_s, RETRY_S[1])
            self._answers.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._answers.wait(), pause_s)

    def _goes_without(self, began: float) -> bool:
        """Return whether Consul answers all but this, again and again: then elections go on without it."""
        answered_at = self._shared.history.answered_at
        answers = answered_at is not None and answered_at >= began
        self._unanswered += answers
        return self._unanswered >= UNANSWERED_MAX

    def _ask_again(self) -> None:
        """Repeat a query that may hang at a lost server, because Consul answers other requests by now."""
        if self._is_known:
            return
        self._answers.set()
        if self._shared.clock() - self._asked_at < HANGS_S:
            return
        self._unanswered += 1
        if self._unanswered >= UNANSWERED_MAX:  # elections go on without it
            self._is_known = True
            self._settle()
        else:
            self.begin()

    def _read_anew(self) -> None:
        """Read the orders now, because the query that is under way may hang, or its answer be an old one."""
        if self._prefix:
            self._doubt()
            self.begin()

    def _doubt(self) -> None:
        """Let nothing be tried before the orders have been read; what withholds a try goes on doing so."""
        self._is_known = False
        for name, contender in (self._shared.contenders.by_name | self._shared.contenders.not_begun).items():
            if contender.withheld is False:
                self._shared.dispatch(OrderSeen(name, None))

    async def _take(self, orders: Orders, prefix: str) -> str:
        """Go by these orders from now on. Return why others may be there that Consul does not show.

        A list leaves out what the token may not read. So a key that is missing is read alone, and while there
        is none, the folder from time to time.
        """
        shown, fault, now = dict(orders.pauses), "", self._shared.clock()
        for item, known in self._pauses.items():
            if item not in shown and (why := await self._why_not_absent(prefix, pause_key(prefix, item))):
                shown[item], fault = known.order, why
        if not (shown or orders.step_downs or fault) and now >= self._looks_at:
            fault = await self._why_not_absent(prefix, orders_folder(prefix))
            self._looks_at = now if fault else now + LOOK_EVERY_S
        wall, late, over = self._shared.wall(), {}, dict[str, Order]()
        seen = seen_of(self._seen, shown.values(), prefix, wall)
        if seen != self._seen:
            self._seen = seen
            self._keep(kept_of(seen))
        present = seen[len(seen) - len(shown) :]
        ended = [each.order for each in present if not each.is_late and each.ends_at <= wall]
        followed = await self._followed(ended) if ended else []
        for each in present:
            key, is_over = pause_key(prefix, each.order.item), each.is_over(wall)
            if is_over or each.is_late:
                late[key] = LATE
            if is_over or (each.order in ended and each.order not in followed):
                over[key] = each.order
        held = {each.session.id for each in self._shared.contenders.by_name.values()}
        for session in self._stepped_down & orders.step_downs.keys() - held:  # its command was killed
            over[step_down_key(prefix, session)] = orders.step_downs[session]
        self._stepped_down &= held | orders.step_downs.keys()
        for key, order in over.items():
            await self._shared.client.ask(WriteOrder("", now, READ_S, key, prefix, None, order.index))
        self._step_downs, self._told.foreign_orders = orders.step_downs, {**orders.foreign, **late}
        return fault

    async def _followed(self, ended: Sequence[Order]) -> Sequence[Order]:
        """Return which of these pauses, which are over here, another node that lives may follow still."""
        nodes = await self._shared.client.present(self._told.service, READ_S)
        if isinstance(nodes, str):
            return ended  # then their keys go when LATE_S have passed
        living = [each for each in nodes if each.status != "critical"]
        return [each for each in ended if any(may_follow(node, each) for node in living)]

    async def _why_not_absent(self, prefix: str, key: str) -> str:
        """Return why this key may be there. Blank: Consul says that it is not."""
        found = await self._shared.client.ask(ReadOrder("", self._shared.clock(), READ_S, key, prefix))
        if isinstance(found, KeyView):
            return f"the list does not show {key}" if found.present else ""
        denied = f"the token may not read {key}; " if isinstance(found, Denied) else ""
        return denied + str(getattr(found, "why", found))

    # --- acting ----------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Tell the core which items are paused everywhere now, and when that changes by itself tell it anew.

        Nothing changes before the first answer, unless the configuration has no fleet.
        """
        if self._timer is not None:
            self._timer.cancel()
        if not self._is_known and self._prefix:
            return
        now, in_force, contenders = self._shared.wall(), dict[str, Seen](), self._shared.contenders
        for name, contender in (contenders.by_name | contenders.not_begun).items():
            seen = self._pauses.get(name)
            if seen is not None and seen.order.key not in ("", contender.settings.key):
                self._told.foreign_orders[pause_key(self._prefix, name)] = ELSEWHERE
                seen = None
            withheld = seen is not None and now < seen.ends_at
            if seen is not None and withheld:
                in_force[name] = seen
                if self._in_force.get(name) != seen:
                    self._ordered(name, "pause everywhere", seen.order, until=seen.until)
            elif contender.withheld:
                self._shared.log.line("info", "order-over", item=name)
            if contender.withheld is not withheld or in_force.get(name) != self._in_force.get(name):
                self._shared.dispatch(OrderSeen(name, withheld))  # also of a newer order, for the catalog
        self._in_force = in_force
        self._told.paused_everywhere = {name: str(seen) for name, seen in in_force.items()}
        over_at = min((each.ends_at for each in in_force.values()), default=NEVER)
        if over_at != NEVER:
            delay_s = min(max(over_at - now, PACE_S), TIMER_S_MAX)
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._settle)
        self._step_down()

    def _ordered(self, item: str, verb: str, order: Order, **more: str | None) -> None:
        by = {"user": order.who, "note": order.why, **more}
        self._shared.log.line("warning", "ordered", item=item, verb=verb, **by)

    def _step_down(self) -> None:
        """Step down from each tenure whose session an order names."""
        for session, order in self._step_downs.items():
            contender = self._shared.contenders.by_name.get(order.item)
            tenure = None if contender is None else contender.tenure
            if tenure is not None and tenure.session == session and tenure.believes:
                self._ordered(order.item, "step-down", order)
                rest_s = REST_S if order.for_s is None else min(order.for_s, REST_S_MAX)
                self._stepped_down.add(session)
                asked = StepDownAsked(order.item, rest_s, order.to or None, order.why, session)
                self._shared.dispatch(asked)
