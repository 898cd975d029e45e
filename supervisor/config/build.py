"""Plain values that the schema has accepted, as the frozen settings that the rest works with.

What an election does not say comes from ``defaults``, and what that does not say from the schema.
Nothing is refused here: the schema has accepted the shape, relations look at the result.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from supervisor.config.environment import Variables
from supervisor.config.schema import Defaults
from supervisor.config.settings import LogSettings
from supervisor.core.settings import (
    LOCK_SUFFIX,
    CandidateCheck,
    Command,
    ElectionSettings,
    Hook,
    Run,
    SemaphoreSettings,
    SessionSettings,
    Tls,
    Webhook,
)
from supervisor.formats import durations, semaphore_record

_NAME = "<name>"  # in a default: the item's name
_LOSE_LISTS = ("on_lose", "on_lose_failure")


class Builder:
    """Builds settings from the sections of one file."""

    def __init__(self, data: dict[str, Any], defaults: Defaults, values: dict[str, Any]) -> None:
        self._values = values
        self._log = {**defaults.of("log"), **data.get("log", {})}
        given = data.get("defaults", {})
        usual_session = {**defaults.of("session"), **defaults.of("session_defaults")}
        self._session = {**usual_session, **given.get("session", {})}
        self._slot_session = {**usual_session, "behavior": "delete", **given.get("session", {})}
        hook = defaults.of("hook")
        self._hook = {**hook, **defaults.of("hook_defaults"), **given.get("hook", {})}
        self._lose_hook = {**hook, **defaults.of("lose_hook_defaults"), **given.get("lose_hook", {})}
        self._run = defaults.of("run")
        self._candidate_check = {**self._hook, **defaults.of("candidate_check")}
        self._tls = defaults.of("tls")
        self._election = defaults.of("election")
        self._semaphore = defaults.of("semaphore")

    def log(self) -> LogSettings:
        """The section ``log``."""
        return LogSettings(**self._log)

    def election(self, name: str, given: dict[str, Any]) -> ElectionSettings:
        """One election, complete."""
        full = {**self._election, **given}
        return ElectionSettings(
            key=given["key"] if "key" in given else full["key"].replace(_NAME, name),
            value=_encoded(given.get("value", self._values["election"])),
            session=self._session_settings(name, {**self._session, **given.get("session", {})}),
            **self._common(name, full),
        )

    def semaphore(self, name: str, given: dict[str, Any]) -> SemaphoreSettings:
        """One semaphore, complete."""
        full = {**self._semaphore, **given}
        prefix = given["prefix"] if "prefix" in given else full["prefix"].replace(_NAME, name)
        session = self._session_settings(name, {**self._slot_session, **given.get("session", {})})
        prune_delay_s = durations.seconds(full["prune_delay"]) if "prune_delay" in full else None
        guard_s = session.lock_delay_s if prune_delay_s is None else prune_delay_s
        return SemaphoreSettings(
            key=prefix + LOCK_SUFFIX,
            value=semaphore_record.body(given.get("value", self._values["semaphore"]), guard_s),
            session=session,
            limit=full["limit"],
            prune_delay_s=guard_s,
            **self._common(name, full),
        )

    def _common(self, name: str, full: dict[str, Any]) -> dict[str, Any]:
        return dict(
            name=name,
            contend=full["contend"],
            on_acquire=self._hooks("on_acquire", full["on_acquire"]),
            on_lose=self._hooks("on_lose", full["on_lose"]),
            on_change=self._hooks("on_change", full["on_change"]),
            on_lose_failure=self._hooks("on_lose_failure", full["on_lose_failure"]),
            run=self._run_settings(full["run"]) if "run" in full else None,
            candidate_check=self._check(full["candidate_check"]) if "candidate_check" in full else None,
            acquire_failure=full["acquire_failure"],
            rejoin_delay_s=durations.seconds(full["rejoin_delay"]),
            on_adopt=full["on_adopt"],
            accept_overlap=full["accept_overlap"],
        )

    def _session_settings(self, name: str, full: dict[str, Any]) -> SessionSettings:
        return SessionSettings(
            name=full["name"].replace(_NAME, name),
            ttl_s=None if full["ttl"] == "none" else durations.seconds(full["ttl"]),
            lock_delay_s=durations.seconds(full["lock_delay"]),
            behavior=full["behavior"],
            node_checks=tuple(full["node_checks"]),
            service_checks=tuple(check["id"] for check in full["service_checks"]),
        )

    def _hooks(self, list_name: str, hooks: list[dict[str, Any]]) -> tuple[Hook, ...]:
        defaults = self._lose_hook if list_name in _LOSE_LISTS else self._hook
        return tuple(
            self._hook_settings(f"{list_name}[{index}]", {**defaults, **hook})
            for index, hook in enumerate(hooks)
        )

    def _hook_settings(self, place: str, full: dict[str, Any]) -> Hook:
        return Hook(
            name=full.get("name", place),
            call=self._webhook(full) if "webhook" in full else _hook_command(full),
            timeout_s=durations.seconds(full["timeout"]),
            retries=full["retries"],
            retry_delay_s=durations.seconds(full["retry_delay"]),
        )

    def _webhook(self, full: dict[str, Any]) -> Webhook:
        return Webhook(
            url=full["webhook"],
            method=full["method"],
            headers=tuple(full["headers"].items()),
            body=full.get("body"),
            secret_file=full.get("secret_file"),
            tls=Tls(**{**self._tls, **full.get("tls", {})}),
        )

    def _run_settings(self, given: dict[str, Any]) -> Run:
        full = {**self._run, **given}
        return Run(_command(full), durations.seconds(full["stop_timeout"]))

    def _check(self, given: dict[str, Any]) -> CandidateCheck:
        full = {**self._candidate_check, **given}
        hook = Hook("candidate_check", _hook_command(full), durations.seconds(full["timeout"]))
        return CandidateCheck(hook, durations.seconds(full["interval"]), full["rise"], full["fall"])


def state_dir(given: dict[str, Any], default: str, environ: Mapping[str, str]) -> str:
    """Where records are kept: the file, else systemd's variable (its first folder), else the default."""
    from_systemd = environ.get("STATE_DIRECTORY", "").partition(":")[0]
    found: str = given.get("state_dir") or from_systemd or default
    return found


def default_values(defaults: Defaults, variables: Variables) -> dict[str, Any]:
    """What a key holds when its item does not say, by the item's kind."""
    values = {kind: defaults.of(kind)["value"] for kind in ("election", "semaphore")}
    return {
        kind: {key: variables.fill(text) for key, text in value.items()} for kind, value in values.items()
    }


def _encoded(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _hook_command(full: dict[str, Any]) -> Command:
    return replace(_command(full), kill_after_s=durations.seconds(full["kill_after"]))


def _command(full: dict[str, Any]) -> Command:
    return Command(
        argv=("/bin/sh", "-c", full["shell"]) if "shell" in full else tuple(full["exec"]),
        env=tuple(full["env"].items()),
        cwd=full.get("cwd"),
        user=full.get("user"),
        group=full.get("group"),
    )
