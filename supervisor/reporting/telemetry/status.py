"""The status of the daemon: whether this node holds, whether all is well, and everything as JSON.

Whether this node holds is read from the contender when a client sends the request, never from the history and
never from Consul. Nothing here changes an item, and no secret may come into a status, because fields are
chosen one by one. The transitions of an item are kept as text until one of them changes, because they are
most of a page: without that text a page of a thousand items with full histories takes a quarter of a second.
"""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from supervisor import __version__
from supervisor.adapters.consul.presence import MANUAL
from supervisor.config.formats.durations import format_duration
from supervisor.core.actions import Reason, Role
from supervisor.core.contender.state import Contender
from supervisor.core.contenders import Contenders
from supervisor.core.lock.semaphore import SemaphoreLock
from supervisor.core.outcomes import View
from supervisor.core.settings import SemaphoreSettings
from supervisor.core.times import LONG_AGO, NEVER
from supervisor.reporting.telemetry.event_log import Event
from supervisor.reporting.telemetry.formatting import bounded, cannot_start, kept_in_silence, remedy, when
from supervisor.reporting.telemetry.history import History
from supervisor.reporting.telemetry.item_history import Attempt, ItemHistory, Transition
from supervisor.reporting.telemetry.item_warnings import (
    Shown,
    by,
    pauses_of,
    silence_of,
    silent_since,
    warnings_of,
)

VERSION = 1  # of the status; fields may be added, and none changes its meaning or is removed
_FORGETS = "a boot of this machine forgets what changes now (pauses, stuck items, tenures, the configuration)"
VALUE_BYTES_MAX = 1024  # of a value in Consul: enough to recognise it


def lease_left_s(contender: Contender, now: float) -> float | None:
    """Return how long this node believes without news from Consul. None: it does not believe."""
    tenure = contender.tenure
    if tenure is None or not tenure.believes:
        return None
    return max(0.0, tenure.expires_at(contender.lease) - now)


def is_unknown(contender: Contender, history: ItemHistory, now: float) -> bool:
    """Return whether nobody can tell who holds, because no answer is young enough to show it.

    A node whose lease has expired does not act any more, although the newest answer shows it as holder. While
    it acts, no other node does, however long Consul is silent.
    """
    if contender.may_act(now):
        return False
    if contender.lock.view is None:
        return history.unanswered
    return history.expired or now - history.seen_at > contender.shown_s


class Status:
    """The status of one daemon, with the clocks of its history."""

    def __init__(
        self, contenders: Contenders, history: History, *, node: str, consul: str, path: Path | None
    ) -> None:
        """Keep the parts. ``consul``: its address. ``path``: of the configuration, if it has one."""
        self._contenders, self._history = contenders, history
        self._node, self._consul_address, self._path = node, consul, path
        self._wall, self._clock = history.wall, history.clock

    def items(self) -> dict[str, Contender]:
        """Return all items by name: those of the configuration, and those that are being wound up.

        Of two items with one name, the result has the one that is being wound up.
        """
        return self._contenders.not_begun | self._contenders.by_name

    def item(self, name: str) -> Contender | None:
        return self._contenders.by_name.get(name) or self._contenders.not_begun.get(name)

    def holds(self, name: str) -> bool | None:
        """Return whether this node holds the item at this instant. None: there is no such item.

        As ``Contender.may_act``, it says nothing of the next moment.
        """
        contender = self.item(name)
        return None if contender is None else contender.may_act(self._clock())

    def view(self, contender: Contender) -> View | None:
        """Return the newest view of the lock. None: there is none that may still be true."""
        history = self._history.of(contender.settings.name)
        return None if is_unknown(contender, history, self._clock()) else contender.lock.view

    def reset_in_s(self, name: str) -> float | None:
        """Return in how long the watchdog of this item resets the machine. None: it is not armed."""
        device = self._contenders.devices.of_item(name)
        return None if device is None else max(0.0, device.fires_at - self._clock())

    def kept(self, names: Iterable[str]) -> str:
        """Return why a command should not stop these items now. Blank: it may."""
        known, now = self._contenders.by_name, self._clock()
        wall = self._wall() - now
        since = {name: silent_since(known[name], now, wall) for name in names if name in known}
        return kept_in_silence(since)

    def problems(self) -> list[str]:
        """Return what makes this daemon unhealthy, one line for each problem. Empty: it is healthy."""
        now = self._clock()
        found = [
            f"{name} {trouble}"
            for name, contender in self._contenders.by_name.items()
            for trouble in _problems(contender, self._history.of(name), now)
        ]
        if self._history.refused:
            found.append(self._history.refused)
        if why := self._history.why_token_refused(now):
            found.append(f"Consul refuses the token: {bounded(why)}")
        return found

    def body(self) -> bytes:
        now, items = self._clock(), self.items()
        head = {
            "version": VERSION,
            "daemon": self._daemon(),
            **self.health(),
            "consul": self._consul(now),
            "last_event": self._history.events.newest_at,
        }
        listed = ",\n".join(self._item(name, contender, now) for name, contender in items.items())
        return f'{_json(head)[:-1]},"items":[\n{listed}]}}\n'.encode()

    def health(self) -> dict[str, Any]:
        troubles = self.problems()
        return {"healthy": not troubles, "troubles": troubles, "warnings": list(self._own_warnings())}

    def _own_warnings(self) -> Iterator[str]:
        """Yield each warning that is not about a single item."""
        if why := self._history.uncopied:
            yield f"{_FORGETS}: {bounded(why)}"
        yield from self._history.fleet.warnings()

    def parts(self) -> Iterator[tuple[str, str, str]]:
        """Yield of each item its name, its role, and what other nodes should know of it in short.

        No text changes while nothing happens, because Consul's servers write each change.
        """
        wall = self._wall() - self._clock()
        for name, contender in self.items().items():
            order = self._history.fleet.paused_everywhere.get(name, "").removeprefix("paused ")
            paused = ", ".join(filter(None, (order, *self._pauses(contender))))
            given = self._command(name, contender)
            yield name, contender.role, _in_short(contender, self._history.of(name), given, paused, wall)

    def events(self, newest: int) -> bytes:
        return self._history.events.body(newest)

    def _daemon(self) -> dict[str, Any]:
        return {
            "version": __version__,
            "node": self._node,
            "pid": os.getpid(),
            "started": when(self._history.began_at),
            "now": when(self._wall()),
            "config": None if self._path is None else str(self._path),
        }

    def _consul(self, now: float) -> dict[str, Any]:
        answered_at = self._history.answered_at
        return {
            "address": self._consul_address,
            "answered_s_ago": None if answered_at is None else round(max(0.0, now - answered_at), 3),
            "token_refused": bool(self._history.why_token_refused(now)),
            "fleet": self._history.fleet.service or None,
        }

    def _item(self, name: str, contender: Contender, now: float) -> str:
        history = self._history.of(name)
        after = frozenset() if name in self._contenders.by_name else self._contenders.begins_after(name)
        led = self._history.leaders.of(name, contender.settings.key)
        given, unknown_since = self._command(name, contender), self._unknown_since(contender, history, now)
        device = self._contenders.devices.of_item(name)
        starves = device is not None and device.starves
        wall, pauses = self._wall() - now, self._pauses(contender)
        shown = Shown(contender, history, given, pauses, unknown_since, starves, after, now, wall)
        order = self._history.fleet.paused_everywhere.get(name)
        left_s, reset_in_s = lease_left_s(contender, now), self.reset_in_s(name)
        hook, error = history.last_hook, history.last_error
        over_at = None if error is None or error.over_at is None else when(error.over_at)
        fields = {
            "name": name,
            "holds": contender.may_act(now),
            "lease_left_s": _rounded(left_s),
            "watchdog_armed": reset_in_s is not None if contender.settings.watchdog else None,
            "reset_in_s": _rounded(reset_in_s),
            **_fields(contender, self.view(contender)),
            "leader_unknown_since": unknown_since,
            "paused_everywhere": order,
            "last_leader": None if led is None else {"node": led.shown or led.name, "since": led.since},
            **silence_of(contender, now, wall),
            "warnings": list(warnings_of(shown)),
            "since": when(history.since),
            "command": None if given is None else _command(given),
            "last_hook": hook and {"hook": hook.hook, "event": hook.event, **_outcome(hook)},
            "last_error": error and {"at": when(error.at), "text": bounded(error.text), "over_at": over_at},
        }
        if not history.transitions_json:
            history.transitions_json = _json([_transition(each) for each in history.transitions])
        return f'{_json(fields)[:-1]},"transitions":{history.transitions_json}}}'

    def _unknown_since(self, contender: Contender, history: ItemHistory, now: float) -> str | None:
        """Return from when on nobody can tell who holds. None: the newest view may still be true."""
        if not is_unknown(contender, history, now):
            return None
        return when(self._wall() + max(history.seen_at, self._history.began) - now)

    def _command(self, name: str, contender: Contender) -> Event | None:
        """Return the command by which the item is paused, or else steps down or rests. None: none is kept."""
        events, tenure = self._history.events, contender.tenure
        if contender.paused:
            drain = events.command("drain", name) if contender.drained else None
            return drain or events.command("pause", name)
        steps_down = tenure is not None and tenure.reason is Reason.STEP_DOWN
        return events.command("step-down", name) if steps_down or contender.role is Role.RESTING else None

    def _pauses(self, contender: Contender) -> tuple[str, ...]:
        return tuple(pauses_of(contender, self._history.events.command, self._wall()))


def _problems(contender: Contender, history: ItemHistory, now: float) -> Iterator[str]:
    tenure = contender.tenure
    if contender.role is Role.STUCK:
        yield f"is stuck: {history.why_stuck}; {remedy(contender.settings.name)}"
    expired = tenure is not None and not tenure.believes and tenure.reason is Reason.LEASE_EXPIRED
    cut_off_s = max(0.0, contender.lease.cut_off_s)
    if expired or history.expired:
        yield "was given up: Consul did not answer for longer than the lease allows"
    elif tenure is None or not tenure.believes:
        what = "cannot be taken over" if contender.settings.contend else "cannot be observed"
        if contender.role in (Role.WAITING, Role.OBSERVER) and history.refused:
            yield f"{what}: {bounded(next(iter(history.refused.values())))}"
        elif history.unanswered and now - history.answered_at > cut_off_s:
            yield f"{what}: Consul's servers have not answered for more than {format_duration(cut_off_s)}"
    if tenure is not None and tenure.believes and contender.faults:
        yield f"goes on leading, but {cannot_start(contender.faults[0])}"
    if contender.record_keeper.refused is not None:
        yield f"cannot be recorded: {history.unrecorded or 'see the log'}"


def _in_short(
    contender: Contender, history: ItemHistory, given: Event | None, paused: str, wall: float
) -> str:
    """Return what other nodes should know of an item. ``wall``: Unix time less the core's clock."""
    words = []
    if contender.tenure is not None and contender.tenure.believes:
        words.append(f"token {contender.tenure.token}")
    if contender.guard is not None:
        until = contender.guard.waits_until(contender.settings.fence)
        words += [contender.guard.waits_for, f"until {when(round(wall + until))}" if until != NEVER else ""]
    if paused:
        words.append(paused if contender.role is Role.PAUSED else f"paused {paused}")
    if contender.role is Role.RESTING:
        words.append(f"after step-down{by(given)}")
    elif contender.role is Role.INELIGIBLE:
        # No output of a hook: more people may read the catalog than this status.
        words.append("" if contender.health.fit else "candidate_check fails")
        words.append(bounded(history.ineligible) if contender.ineligible else "")
    elif contender.role is Role.STUCK:
        words.append(history.why_stuck)
    elif contender.settings.manual and contender.role is Role.WAITING and not contender.allowed:
        words.append(MANUAL)
    return " ".join(filter(None, words))


def _fields(contender: Contender, view: View | None) -> dict[str, Any]:
    settings, tenure, lock = contender.settings, contender.tenure, contender.lock
    limits: dict[str, Any] = {"limit": None, "effective_limit": None, "holders": None}
    leader = view.leader if view is not None else None
    if isinstance(settings, SemaphoreSettings) and isinstance(lock, SemaphoreLock):
        held = () if view is None else view.holders
        limits = {
            "limit": settings.limit,
            "effective_limit": lock.effective_limit,
            "holders": [{"session": each.session, "value": display_value(each.value)} for each in held],
        }
    return {
        "kind": settings.kind,
        "key": settings.key,
        "role": contender.role,
        "reason": contender.reason,
        "paused": contender.paused,
        "drained": contender.drained,
        "paused_until": when(contender.paused_until) if LONG_AGO < contender.paused_until < NEVER else None,
        "service": None if settings.service is None else settings.service.name,
        "service_registered": contender.service.is_registered,
        "leader": None if leader is None else display_value(leader),
        "session": tenure.session if tenure is not None else contender.session.id,
        "lock_index": tenure.lock_index if tenure is not None else 0,
        "fencing_token": tenure.token if tenure is not None else 0,
        "slot": tenure.slot if tenure is not None else None,
        "lease_room_s": round(contender.lease.belief_s, 3) if settings.contend else None,
        **limits,
    }


def _command(given: Event) -> dict[str, Any]:
    fields = {field: given.get(field) for field in ("verb", "uid", "user", "note")}
    return {"at": given["time"], **fields}


def _transition(transition: Transition) -> dict[str, Any]:
    return {
        "transition": transition.id,
        "event": transition.event,
        "reason": transition.reason,
        "at": when(transition.at),
        "duration_s": _rounded(transition.duration_s),
        "hooks": [
            {"hook": each.hook, "attempt": each.number, **_outcome(each)} for each in transition.attempts
        ],
    }


def _outcome(attempt: Attempt) -> dict[str, Any]:
    return {
        "result": "running" if attempt.ok is None else "ok" if attempt.ok else "failed",
        "at": when(attempt.at),
        "duration_s": _rounded(attempt.duration_s),
        "detail": bounded(attempt.detail),
    }


def display_value(value: bytes) -> str:
    """Return a value of Consul as text, of at most VALUE_BYTES_MAX bytes."""
    text = value[:VALUE_BYTES_MAX].decode(errors="replace")
    return text if len(value) <= VALUE_BYTES_MAX else f"{text}…"


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
