"""Checks that no schema can express: rules between settings, and for texts whose variables are filled in.

Each check looks at one finished election or semaphore, and reports the path of the setting to change.
``supervisor.core.lease`` has the safety arithmetic. This module only puts its results into words.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from supervisor.config.consul import url_fault
from supervisor.config.problems import SECTIONS, KeyPath, Report, hooks_of, items_of
from supervisor.core.lease import (
    ROOM_MIN_S,
    SILENCE_MIN_S,
    guard_max_s,
    lease_of,
    lose_terms,
    sufficient_guard_s,
)
from supervisor.core.settings import HOOK_EVENTS, LOCK_SUFFIX, Command, Hook, ItemSettings, Tls, Webhook
from supervisor.formats import templates
from supervisor.formats.durations import format_duration

VALUE_BYTES_MAX = 64 * 1024  # hooks get the value in their environment, where the kernel allows 128 KiB
SLOT_VALUE_BYTES_MAX = 4096  # each contender reads the values of all contenders at each change
GIVEN_BODY_CHARS_MAX = 64 * 1024  # of a webhook's body before its facts, as JSON too
KEY_CHARS_MAX = 512  # the schema refuses longer keys, so longer ones are not compared
TTL_MIN_S = 10.0  # Consul's default session_ttl_min

# With the unit that is shipped, a supervisor that hangs runs again after the sum of these.
WATCHDOG_S = 10.0  # WatchdogSec
RESTART_S = 1.0  # RestartSec
START_S = 1.0  # Python, the file and the records

_SOME_URL = "http://localhost/"  # in the place of a URL that is refused already
_OVERLAP = "or accept that both may act at once (accept_overlap: true)"
_VALUE_DEPTH = 3  # elections.NAME.value
_BODY_DEPTH = 5  # elections.NAME.on_change[0].body
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
_UNTYPED = re.compile("(?:^|[\\s=(])[\u2018-\u201f]|\u00a0")  # as word processors and web pages write them
_OUR_HEADERS = ("host", "content-length", "transfer-encoding", "connection")
_SIGNATURE_HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")


def check_keys(data: dict[str, Any], report: Report, default_key: str, default_prefix: str) -> None:
    """Refuse two items with one name, one key, or keys of which one is below the other.

    The check reads raw data, so that no fault elsewhere hides a shared key.
    """
    named: dict[str, KeyPath] = {}
    keys = _Keys(report)
    for section, name, item in items_of(data):
        other = named.setdefault(name, (section, name))
        if other != (section, name):
            whose = f"{section_of(other)} ({report.places.of_key(other)})"
            report.refuse_key((section, name), f"cannot share its name with {whose}: give each its own")
        what, default = ("key", default_key) if section == "elections" else ("prefix", default_prefix)
        given = item.get(what, default.replace("<name>", name)) if isinstance(item, dict) else None
        if isinstance(given, str) and len(given) <= KEY_CHARS_MAX:
            keys.add(given if what == "key" else f"{given}/", (section, name, what))


def section_of(path: KeyPath) -> str:
    """Return the name of an item for messages: ``elections.namenode``."""
    return ".".join(map(str, path[:2]))


class _Keys:
    """The keys of all items so far. A key that ends with / stands for every key below it."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._of: dict[str, KeyPath] = {}
        self._below: dict[str, KeyPath] = {}

    def add(self, key: str, path: KeyPath) -> None:
        folders = [key[: at + 1] for at, letter in enumerate(key[:-1]) if letter == "/"]
        taken = [self._of.get(folder) for folder in (key, *folders)]
        other = next((each for each in (*taken, self._below.get(key)) if each is not None), None)
        if other is not None:
            self._report.refuse(path, self._shared(path, other))
            return
        self._of[key] = path
        for folder in folders:
            self._below.setdefault(folder, path)

    def _shared(self, path: KeyPath, other: KeyPath) -> str:
        places = self._report.places
        if places.written(path) == places.written(other):
            return f"cannot be the {path[-1]} of {other[1]} as well: put ${{EACH}} into it"
        whose = f"{section_of(other)} ({places.of_value(other)})"
        return f"cannot share its {path[-1]} with {whose}: give each its own"


def check_ambiguous(ambiguous: set[KeyPath], report: Report) -> None:
    """Refuse ambiguous scalars within the mapping or list of a value or body.

    The schema allows any type there.
    """
    for path in ambiguous:
        in_value = path[2:_VALUE_DEPTH] == ("value",) and len(path) > _VALUE_DEPTH
        in_body = path[4:_BODY_DEPTH] == ("body",) and len(path) > _BODY_DEPTH
        in_default = path[0] == "defaults" and path[3:4] == ("body",) and len(path) > _BODY_DEPTH - 1
        if path[0] in SECTIONS and (in_value or in_body) or in_default:
            message = "cannot be ambiguous: not every reader of YAML reads it as text, quote it if it is text"
            report.refuse(path, message)


def check_bodies(data: dict[str, Any], report: Report) -> None:
    """Refuse a webhook's body that is a mapping or list, and not sent as JSON.

    The check reads raw data, because the settings have each body as text.
    """
    for path, hook in hooks_of(data):
        given: dict[str, Any] = hook if isinstance(hook, dict) else {}
        headers = given.get("headers", {})
        if not isinstance(given.get("body", ""), dict | list) or not isinstance(headers, dict):
            continue
        if not templates.is_json((name, value) for name, value in headers.items() if isinstance(value, str)):
            message = "cannot be a mapping or list with this Content-Type: remove the header, or write text"
            report.refuse((*path, "body"), message)


def check_item(settings: ItemSettings, report: Report) -> None:
    """Report what cannot be used within one election or semaphore, and warn of consequences."""
    path: KeyPath = (f"{settings.kind}s", settings.name)
    if "$" in settings.key:
        what = "key" if settings.kind == "election" else "prefix"
        report.refuse((*path, what), "cannot be a key of Consul: a $ cannot stand in it")
    size, longest = (
        len(settings.value),
        VALUE_BYTES_MAX if settings.kind == "election" else SLOT_VALUE_BYTES_MAX,
    )
    if settings.kind == "semaphore" and settings.key.endswith(2 * LOCK_SUFFIX):
        report.refuse((*path, "prefix"), f"cannot end with {LOCK_SUFFIX}: that is a key of its own")
    if size > longest:
        report.refuse((*path, "value"), f"cannot be {size} bytes long: at most {longest}")
    _check_hook_names(settings, path, report)
    for hook_path, hook in _hooks(settings, path):
        if isinstance(hook.call, Webhook):
            _check_webhook(hook.call, hook_path, report)
    for command_path, command in _commands(settings, path):
        _check_shell(command, command_path, report)
    if settings.contend:
        _check_lease(settings, path, report)


def _hooks(settings: ItemSettings, path: KeyPath) -> Iterator[tuple[KeyPath, Hook]]:
    for list_name in HOOK_EVENTS:
        for index, hook in enumerate(getattr(settings, list_name)):
            yield (*path, list_name, index), hook


def _commands(settings: ItemSettings, path: KeyPath) -> Iterator[tuple[KeyPath, Command]]:
    for hook_path, hook in _hooks(settings, path):
        if isinstance(hook.call, Command):
            yield hook_path, hook.call
    if settings.run is not None:
        yield (*path, "run"), settings.run.command
    if settings.check_hook is not None and isinstance(settings.check_hook.call, Command):
        yield (*path, "candidate_check"), settings.check_hook.call


def _check_shell(command: Command, path: KeyPath, report: Report) -> None:
    """Warn of characters in a text for the shell that only look like its own."""
    if report.places.has_key((*path, "shell")) and _UNTYPED.search(_QUOTED.sub("", command.argv[-1])):
        message = "a typographic quote or no-break space is a letter to the shell: type it anew"
        report.warn((*path, "shell"), message)


def _check_hook_names(settings: ItemSettings, path: KeyPath, report: Report) -> None:
    seen: Counter[str] = Counter()
    for hook_path, hook in _hooks(settings, path):
        seen[hook.name] += 1
        if seen[hook.name] > 1:
            report.refuse(
                (*hook_path, "name"), f"cannot name two hooks of one {settings.kind}: give each its own"
            )


def _check_webhook(webhook: Webhook, path: KeyPath, report: Report) -> None:
    url = _check_templates(webhook, path, report)
    if len(webhook.body or "") > GIVEN_BODY_CHARS_MAX:
        report.refuse((*path, "body"), f"cannot be more than {GIVEN_BODY_CHARS_MAX} characters long as JSON")
    if why := url_fault(url, "send them in a header"):
        report.refuse((*path, "webhook"), why)
    elif webhook.tls != Tls() and not webhook.url.startswith("https://"):
        report.refuse((*path, "tls"), "cannot be used with this webhook: begin its URL with https://")
    elif not webhook.tls.verify:
        report.warn(
            (*path, "tls", "verify"),
            "the certificate is not verified: anyone on the network path can read all requests",
        )
    reserved = _OUR_HEADERS + (_SIGNATURE_HEADERS if webhook.secret_file else ())
    seen: set[str] = set()
    for name, _ in webhook.headers:
        if name.lower() in reserved:
            report.refuse_key((*path, "headers", name), "cannot be set: the request has its own, remove it")
        if name.lower() in seen:
            report.refuse_key(
                (*path, "headers", name), "cannot be set twice: upper and lower case are the same"
            )
        seen.add(name.lower())


def _check_templates(webhook: Webhook, path: KeyPath, report: Report) -> str:
    """Report what no facts can fill in, and return the URL as it is when all facts are blank."""
    try:
        blank = templates.filled(webhook, {})
    except templates.Unfit as error:
        report.refuse((*path, *error.key), f"cannot be filled in: {error}")
        return _SOME_URL
    if templates.lets_event_choose_receiver(webhook.url):
        message = "cannot hold a fact before its path: an event must not choose the receiver, write the host"
        report.refuse((*path, "webhook"), message)
        return _SOME_URL
    body = webhook.body or ""
    if templates.is_template(body) and templates.is_json(webhook.headers) and not _is_json(blank.body or ""):
        message = "cannot be sent: with its facts it is no JSON, write a mapping, or set another Content-Type"
        report.refuse((*path, "body"), message)
    return blank.url


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _check_lease(settings: ItemSettings, path: KeyPath, report: Report) -> None:
    session = settings.session
    if session.ttl_s is None and settings.accept_overlap:
        report.refuse((*path, "accept_overlap"), "cannot be true with ttl: none: give the session a TTL")
        return
    lease = lease_of(settings)
    if lease.room_s < ROOM_MIN_S and not settings.accept_overlap:
        report.refuse(_guard_path(settings, path), _no_room(settings))
        return
    if lease.silence_s < SILENCE_MIN_S:
        report.warn(_guard_path(settings, path), _little_silence(settings))
    if _return_s(settings) > settings.guard_s and not settings.accept_overlap:
        report.warn(_guard_path(settings, path), _late_return(settings))
    if 0 < settings.guard_s <= lease.acquire_delay_s:
        report.warn((*path, "acquire_delay"), _little_preference(settings))
    if settings.kind == "semaphore" and session.behavior == "release":
        message = "the key of a contender that vanishes stays below the prefix: use delete, which removes it"
        report.warn((*path, "session", "behavior"), message)
    if session.ttl_s is not None and session.ttl_s < TTL_MIN_S:
        message = f"below {format_duration(TTL_MIN_S)} Consul refuses it unless its session_ttl_min allows it"
        report.warn((*path, "session", "ttl"), message)


def _guard_path(settings: ItemSettings, path: KeyPath) -> KeyPath:
    return (*path, "session", "lock_delay") if settings.kind == "election" else (*path, "prune_delay")


def _no_room(settings: ItemSettings) -> str:
    lease = lease_of(settings)
    room_s, least_s = format_duration(lease.room_s), format_duration(ROOM_MIN_S)
    return (
        f"cannot end on_lose before another node may {_hold(settings)}: room would be {room_sum(settings)} "
        f"= {room_s}, at least {least_s} are needed: {_roomier(settings)}"
    )


def _hold(settings: ItemSettings) -> str:
    return "hold the key" if settings.kind == "election" else "have the slot"


def room_sum(settings: ItemSettings) -> str:
    """Return the sum of the room: lock_delay or prune_delay, less the margin and each term of lose_time."""
    lease = lease_of(settings)
    terms = [(settings.guard_name, lease.lock_delay_s), ("margin", lease.margin_s), *lose_terms(settings)]
    return " - ".join(f"{what} {format_duration(length_s)}" for what, length_s in terms)


def _roomier(settings: ItemSettings) -> str:
    what, enough_s = settings.guard_name, sufficient_guard_s(settings, ROOM_MIN_S)
    if enough_s is None:
        longest = format_duration(guard_max_s(settings))
        return f"no {what} up to {longest} is enough, shorten the timeouts, {_OVERLAP}"
    enough = f"{enough_s}s or more{_quiet_from(settings, enough_s)}"
    return f"set {what} to {enough}, shorten the timeouts, {_OVERLAP}"


def _quiet_from(settings: ItemSettings, enough_s: int) -> str:
    """Return the least lock_delay or prune_delay about which nothing is left to warn, where another is named.

    Blank: none is long enough.
    """
    for_silence_s = sufficient_guard_s(settings, ROOM_MIN_S, SILENCE_MIN_S)
    if for_silence_s is None:
        return ""
    quiet_s = max(for_silence_s, math.ceil(_return_s(settings)))
    return (
        ""
        if quiet_s in (enough_s, 0) or quiet_s > guard_max_s(settings)
        else f" ({quiet_s}s ends each warning about it)"
    )


def _return_s(settings: ItemSettings) -> float:
    """Return how long a supervisor that hangs may take until its on_lose has ended."""
    return WATCHDOG_S + RESTART_S + START_S + lease_of(settings).lose_time_s


def _late_return(settings: ItemSettings) -> str:
    lose_time_s = lease_of(settings).lose_time_s
    late_s = _return_s(settings) - settings.guard_s
    parts = {"WatchdogSec": WATCHDOG_S, "RestartSec": RESTART_S, "start": START_S, "lose_time": lose_time_s}
    terms = " + ".join(f"{what} {format_duration(length_s)}" for what, length_s in parts.items())
    late, guard = format_duration(late_s), f"{settings.guard_name} {format_duration(settings.guard_s)}"
    enough_s = math.ceil(_return_s(settings))
    return (
        f"if this supervisor hangs, on_lose may end {late} after another node may {_hold(settings)}, because "
        f"{terms} exceeds {guard}: set {enough_s}s, shorten the timeouts, or lower WatchdogSec in a drop-in"
    )


def _little_preference(settings: ItemSettings) -> str:
    """Return the consequence of a try that comes when the lock-delay of a crashed holder is over already."""
    lead_s = format_duration(lease_of(settings).acquire_delay_s - settings.guard_s)
    guard = format_duration(settings.guard_s)
    return (
        f"after a crash this node leaves the key to others for {lead_s} only, because its first try comes "
        f"after the lock_delay: set less than {guard}, or {guard} plus the time to leave"
    )


def _little_silence(settings: ItemSettings) -> str:
    what, enough_s = settings.guard_name, sufficient_guard_s(settings, ROOM_MIN_S, SILENCE_MIN_S)
    remedy = (
        f"set {enough_s}s to tolerate that"
        if enough_s
        else f"no {what} is long enough for that, shorten the timeouts"
    )
    silence = format_duration(max(0.0, lease_of(settings).silence_s))
    return f"tolerates {silence} without an answer from Consul, whose change of leader takes 14s: {remedy}"
