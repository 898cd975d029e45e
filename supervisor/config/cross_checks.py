"""Checks that no schema can express: rules between settings, and for texts whose variables are filled in.

The rules about times are in ``lease_checks``.
"""

import json
import re
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

from supervisor.config import hook_checks
from supervisor.config.consul import url_fault
from supervisor.config.formats import templates
from supervisor.config.lease_checks import Surroundings, check_lease
from supervisor.config.problems import SECTIONS, KeyPath, Report, hooks_of, items_of
from supervisor.core.claim.record import TENURE_SUFFIX
from supervisor.core.settings import HOOK_EVENTS, LOCK_SUFFIX, Hook, ItemSettings, Tls, Webhook

VALUE_BYTES_MAX = 64 * 1024  # hooks get the value in their environment, where the kernel allows 128 KiB
SLOT_VALUE_BYTES_MAX = 4096  # each contender reads the values of all contenders at each change
GIVEN_BODY_CHARS_MAX = 64 * 1024  # of a webhook's body before its facts, as JSON too
KEY_CHARS_MAX = 512  # the schema refuses longer keys, so longer ones are not compared

_SOME_URL = "http://localhost/"  # in the place of a URL that is refused already
_HOST_NAME = re.compile(r"(?!.*(^|\.)[0-9]+\.?$)((?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!$)|\.?$))+")
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
            whose = f"{section_of(other)} ({report.positions.of_key(other)})"
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
        positions = self._report.positions
        if positions.written(path) == positions.written(other):
            return f"cannot be the {path[-1]} of {other[1]} as well: put ${{EACH}} into it"
        whose = f"{section_of(other)} ({positions.of_value(other)})"
        return f"cannot share its {path[-1]} with {whose}: give each its own"


def check_ambiguous(ambiguous: set[KeyPath], report: Report) -> None:
    """Refuse ambiguous scalars within the mapping or list of a value or body.

    The schema allows any type there.
    """
    for path in ambiguous:
        in_items = path[0] in SECTIONS
        own = path[2:] if in_items else path[1:] if path[0] == "defaults" else ()
        key, *below = own or ("",)
        in_body = "body" in below[:-1]
        if (in_items and key == "value" and below) or in_body:
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


def check_item(settings: ItemSettings, report: Report, around: Surroundings) -> None:
    path: KeyPath = (f"{settings.kind}s", settings.name)
    if "$" in settings.key:
        what = "key" if settings.kind == "election" else "prefix"
        report.refuse((*path, what), "cannot be a key of Consul: a $ cannot stand in it")
    longest = VALUE_BYTES_MAX if settings.kind == "election" else SLOT_VALUE_BYTES_MAX
    if settings.kind == "election" and settings.key.endswith(TENURE_SUFFIX):
        report.refuse(
            (*path, "key"), f"cannot end with {TENURE_SUFFIX}: another key may have its record there"
        )
    if settings.kind == "semaphore" and settings.key.endswith(2 * LOCK_SUFFIX):
        report.refuse((*path, "prefix"), f"cannot end with {LOCK_SUFFIX}: that is a key of its own")
    if (size := len(settings.value)) > longest:
        report.refuse((*path, "value"), f"cannot be {size} bytes long: at most {longest}")
    if settings.service is not None and settings.service.address:
        _check_address(settings.service.address, (*path, "service", "address"), report)
    names = set()
    for hook_path, hook in _hooks(settings, path):
        if hook.name in names:
            why = f"cannot name two hooks of one {settings.kind}: give each its own"
            report.refuse((*hook_path, "name"), why)
        names.add(hook.name)
        if isinstance(hook.call, Webhook):
            _check_webhook(hook.call, hook_path, report)
        hook_checks.check_call(hook.call, hook_path, report)
    if settings.run is not None:
        hook_checks.check_call(settings.run.command, (*path, "run"), report)
    if settings.check_hook is not None:
        hook_checks.check_call(settings.check_hook.call, (*path, "candidate_check"), report)
    if settings.contend:
        check_lease(settings, path, report, around)


def _check_address(address: str, path: KeyPath, report: Report) -> None:
    """Refuse what is no address and no host name; no message shows it, because a variable may be in it."""
    try:
        literal = ip_address(address)
        why = "it stands for all addresses, write the one to be found" if literal.is_unspecified else ""
        is_local = literal.is_loopback
    except ValueError:
        why = "" if _HOST_NAME.fullmatch(address) else "write an address without a port, or a host name"
        is_local = address.rstrip(".").lower() == "localhost"
    if why:
        report.refuse(path, f"cannot be reached: {why}")
    if is_local:
        report.warn(path, "each machine takes this for itself: write an address that others can reach")


def _hooks(settings: ItemSettings, path: KeyPath) -> Iterator[tuple[KeyPath, Hook]]:
    if settings.fence is not None:  # first, so that a hook which has its name is refused, and not the fence
        methods = settings.fence.methods
        for index, hook in enumerate(methods):
            yield (*path, "fence", "try", index) if len(methods) > 1 else (*path, "fence"), hook
    for list_name in HOOK_EVENTS:
        for index, hook in enumerate(getattr(settings, list_name)):
            yield (*path, list_name, index), hook


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
