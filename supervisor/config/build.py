"""Builds frozen settings from plain values in which every default is filled in.

Nothing is refused here, because the schema has accepted the shape and the cross-checks look at the result.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from supervisor.config import disk_check
from supervisor.config.environment import Variables
from supervisor.config.formats import slot_record, templates
from supervisor.config.formats.durations import parse_duration
from supervisor.config.schema import Defaults
from supervisor.config.settings import FleetSettings
from supervisor.core.settings import (
    HOOK_EVENTS,
    LOCK_SUFFIX,
    CandidateCheck,
    Command,
    ElectionSettings,
    Fence,
    FenceLimit,
    Hook,
    ItemSettings,
    Run,
    SemaphoreSettings,
    ServiceSettings,
    SessionSettings,
    Tls,
    Watchdog,
    Webhook,
)

MANUAL = "manual"  # as a value of ``contend``


def election(full: dict[str, Any]) -> ElectionSettings:
    return ElectionSettings(
        **{
            **_item(full),
            "key": full["key"],
            "value": _encoded(full["value"]),
            "acquire_delay_s": parse_duration(full["acquire_delay"]),
            "busy_delay_s": parse_duration(full["busy_delay"]),
        }
    )


def semaphore(full: dict[str, Any]) -> SemaphoreSettings:
    prune_delay_s = parse_duration(full["prune_delay"])
    return SemaphoreSettings(
        **{
            **_item(full),
            "key": full["prefix"] + LOCK_SUFFIX,
            "value": slot_record.body(full["value"], prune_delay_s),
            "limit": full["limit"],
            "prune_delay_s": prune_delay_s,
        }
    )


def fleet(full: dict[str, Any]) -> FleetSettings:
    return FleetSettings(**_plain(FleetSettings, full))


def _item(full: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that elections and semaphores have in common, by name."""
    parts: dict[str, Any] = {name: tuple(map(_hook, full[name])) for name in HOOK_EVENTS}
    parts["session"] = _session(full["session"])
    if "confirm_every" in full["session"]:
        parts["confirm_every_s"] = parse_duration(full["session"]["confirm_every"])
    parts |= {key: built(full[key]) for key, built in _PARTS.items() if key in full}
    device = full["device"] if full["watchdog"] and full["contend"] else None
    parts["watchdog"] = device and Watchdog(**_plain(Watchdog, device))
    parts["contend"], parts["manual"] = bool(full["contend"]), full["contend"] == MANUAL
    return {**_plain(ItemSettings, full), **parts}


def _session(full: dict[str, Any]) -> SessionSettings:
    ids = tuple(check["id"] for check in full["service_checks"])
    return SessionSettings(**{**_plain(SessionSettings, full), "service_checks": ids})


def _hook(full: dict[str, Any]) -> Hook:
    call = _webhook(full) if "webhook" in full else _command(full)
    return Hook(call=call, **_plain(Hook, full))


def _webhook(full: dict[str, Any]) -> Webhook:
    parts: dict[str, Any] = {"url": templates.settled(full["webhook"]), "tls": Tls(**full["tls"])}
    parts["headers"] = tuple((name, templates.settled(value)) for name, value in full["headers"].items())
    if "body" in full:
        parts["body"] = templates.settled(_encoded(full["body"]).decode())
    return Webhook(**{**_plain(Webhook, full), **parts})


def _fence(full: dict[str, Any]) -> Fence:
    first, *others = map(_hook, full["try"])
    limit = full["limit"] and FenceLimit(**_plain(FenceLimit, full["limit"]))
    return Fence(first, others=tuple(others), **{**_plain(Fence, full), "limit": limit})


def _check(full: dict[str, Any]) -> CandidateCheck:
    hook = None
    if full.keys() & {"shell", "exec", "disk"}:
        hook = Hook("candidate_check", _command(full), parse_duration(full["timeout"]))
    return CandidateCheck(hook=hook, **_plain(CandidateCheck, full))


def _command(full: dict[str, Any]) -> Command:
    if "disk" in full:
        argv = disk_check.argv_of(full["disk"])
    else:
        argv = ("/bin/sh", "-c", full["shell"]) if "shell" in full else tuple(full["exec"])
    return Command(argv=argv, **_plain(Command, full))


_PARTS: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "run": lambda full: Run(command=_command(full), **_plain(Run, full)),
    "candidate_check": _check,
    "fence": _fence,
    "service": lambda full: ServiceSettings(**_plain(ServiceSettings, full)),
}


def _plain(kind: Any, full: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of this dataclass whose values need only another type.

    The field ``x_s`` is the duration ``x`` in seconds. A list is a tuple, and a mapping is a tuple of pairs.
    """
    return {
        name: _frozen(full[key]) if key == name else _seconds(full[key])
        for name, key in _keys(kind).items()
        if key in full
    }


@cache
def _keys(kind: Any) -> dict[str, str]:
    """Return the key in the data of each field of a dataclass, by the field's name."""
    return {field.name: field.name.removesuffix("_s") for field in fields(kind)}


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(value.items())
    return tuple(value) if isinstance(value, list) else value


def _seconds(duration: str) -> float | None:
    return None if duration == "none" else parse_duration(duration)


def _encoded(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def default_values(defaults: Defaults, variables: Variables) -> dict[str, Any]:
    """Return the default of ``value`` with its variables filled in, by the item's kind."""
    values = {kind: defaults.of(kind)["value"] for kind in ("election", "semaphore")}
    return {
        kind: {key: variables.fill(text) for key, text in value.items()} for kind, value in values.items()
    }
