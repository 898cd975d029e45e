"""The table of docs/configuration.md about the effects of changes on a holder.

Each row's change is made to a file, and the effect on a holder must be that of the row.
"""

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from supervisor.config import Config
from supervisor.core.contender.creation import new_contender
from supervisor.core.contender.state import Contender
from supervisor.core.reload import ReloadEffect, plan_reload
from supervisor.core.settings import ItemSettings
from supervisor.daemon.operator import IN_FORCE_S
from supervisor.daemon.reload import CannotReload, read_again
from tests.support.configured import loaded
from tests.support.pages import ROOT, rows
from tests.unit.core.slot_play import holding

PAGE = ROOT / "docs" / "configuration.md"
ROWS = rows(PAGE, "change")
HOOK = {"exec": ["true"], "timeout": "2s"}
APP: dict[str, Any] = {"key": "k", "on_lose": [HOOK]}
REBUILD: dict[str, Any] = {"prefix": "p", "limit": 2, "prune_delay": "40s"}
WEB: dict[str, Any] = {"key": "w"}
BEFORE: dict[str, Any] = {"elections": {"app": APP}, "semaphores": {"rebuild": REBUILD}}


def app(**changes: Any) -> dict[str, Any]:
    """Return the file with another election app."""
    return {**BEFORE, "elections": {"app": {**APP, **changes}}}


def rebuild(**changes: Any) -> dict[str, Any]:
    """Return the file with another semaphore rebuild."""
    return {**BEFORE, "semaphores": {"rebuild": {**REBUILD, **changes}}}


def of_hook(**changes: Any) -> dict[str, Any]:
    return app(on_lose=[{**HOOK, **changes}])


def elections(**named: Any) -> dict[str, Any]:
    return {**BEFORE, "elections": named}


# By the text of the first column: files with that change.
CHANGES: dict[str, list[dict[str, Any]]] = {
    "comments, order, another file of the directory": [dict(reversed(BEFORE.items()))],
    "`on_acquire`": [app(on_acquire=[HOOK]), rebuild(on_acquire=[HOOK])],
    "`on_lose`, `on_lose_failure`, `on_change`": [
        app(on_lose=[HOOK, HOOK]),
        app(on_lose_failure=[HOOK]),
        app(on_change=[HOOK]),
    ],
    "`timeout`, `retries`, `env`, `user` and all else of a hook": [
        of_hook(timeout="3s"),
        of_hook(retries=1),
        of_hook(env={"A": "b"}),
        of_hook(user="root"),
        of_hook(kill_after="2s"),
    ],
    "`value`; `http.public_url` of an item with the default value": [app(value="v"), rebuild(value="v")],
    "`candidate_check`": [
        app(candidate_check={"exec": ["true"]}),
        app(candidate_check={"maintenance": True}),
        app(candidate_check={"disk": "/srv"}),
    ],
    "`acquire_delay`, `busy_delay`, `group`": [
        app(acquire_delay="2s"),
        app(busy_delay="2s"),
        app(group="databases"),
        rebuild(group="databases"),
    ],
    "`rejoin_delay`, `on_adopt`, `acquire_failure`, `accept_overlap`": [
        app(rejoin_delay="1s"),
        app(on_adopt="acquire"),
        app(acquire_failure="keep"),
        app(accept_overlap=True),
    ],
    "`fence`": [
        app(fence={"exec": ["true"]}),
        app(fence={"exec": ["true"], "exclusive": True}),
        app(fence={"exec": ["true"], "exclusive": True, "outage": "15m"}),
    ],
    "`service`": [app(service={"name": "app-leader"}), rebuild(service={"name": "rebuild", "port": 80})],
    "`watchdog`, in the file or as `false` in the item": [
        {**rebuild(watchdog=False), "watchdog": {}},
        {**app(watchdog=False), "watchdog": {"required": False}},
    ],
    "`limit`": [rebuild(limit=3), rebuild(limit=1)],
    "a smaller `prune_delay`": [rebuild(prune_delay="30s")],
    "a larger `prune_delay`": [rebuild(prune_delay="50s")],
    "`run`": [app(run={"exec": ["true"]}), rebuild(run={"exec": ["true"]})],
    "`session.confirm_every`": [
        app(session={"confirm_every": "1s"}),
        rebuild(session={"confirm_every": "10s"}),
    ],
    "`session.ttl`, `session.lock_delay` and all else of `session`": [
        app(session={"ttl": "20s"}),
        app(session={"lock_delay": "40s"}),
        app(session={"behavior": "delete"}),
        app(session={"node_checks": ["serfHealth"]}),
        rebuild(session={"name": "mine"}),
    ],
    "`key`, `prefix`": [app(key="other"), rebuild(prefix="other")],
    "`contend`": [elections(app={"key": "k", "contend": False})],
    "from an election to a semaphore of that name": [
        {"semaphores": {"app": {**REBUILD, "prefix": "k"}, "rebuild": REBUILD}}
    ],
    "another name": [elections(web=APP)],
    "removed from the file": [{"semaphores": {"rebuild": REBUILD}}],
    "added to the file": [elections(app=APP, web=WEB)],
    "an item written out that `for_each` made before, or the reverse": [
        elections(**{"a${EACH}": {"for_each": ["pp"], **APP}})
    ],
    "a further value of `for_each`": [elections(**{"app": APP, "${EACH}": {"for_each": ["web"], **WEB}})],
}


def config_of(folder: Path, file: dict[str, Any]) -> Config:
    return loaded(folder, json.dumps(file))


def items_of(folder: Path, file: dict[str, Any]) -> dict[str, ItemSettings]:
    return {settings.name: settings for settings in config_of(folder, file).items}


def codes(text: str) -> list[str]:
    return re.findall(r"`([\w.]+)`", text)


def holders(items: dict[str, ItemSettings]) -> Iterator[Contender]:
    tenure = holding().contender.tenure
    assert tenure is not None and tenure.believes
    for settings in items.values():
        yield replace(new_contender(settings, spread=0.0, instance="i"), tenure=tenure)


def said(effects: dict[str, ReloadEffect]) -> list[str]:
    """Return the lines of ``reload`` about the changes."""
    return [str(effect) for effect in effects.values() if effect is not ReloadEffect.UNCHANGED] or [
        ReloadEffect.UNCHANGED
    ]


def reloaded(config: Config, running: Config) -> Config:
    """Return the settings that a daemon with the running configuration takes from this one."""

    async def load() -> Config:
        return config

    return asyncio.run(read_again(load, running))


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_each_change_has_the_effect_of_its_row(row: list[str], tmp_path: Path) -> None:
    change, effects, does = row
    assert CHANGES[change]
    for after in CHANGES[change]:
        had = {each.settings.name: each for each in holders(items_of(tmp_path, BEFORE))}
        assert said(plan_reload(had, {}, items_of(tmp_path, after))) == effects.split(", "), after
    assert ("goes on" in does) == (effects == "changed"), "who goes on is who only changes"


def test_every_tested_change_has_its_row() -> None:
    assert [row[0] for row in ROWS] == list(CHANGES)


def test_every_key_of_an_election_or_semaphore_is_in_a_row() -> None:
    """The keys of a hook, a check, a session and a run have the name of the whole."""
    named = {key for row in ROWS for key in re.findall(r"`(\w+)`", row[0])}
    rules = json.loads((ROOT / "schemas" / "config.schema.json").read_text())["$defs"]
    assert {*rules["election"]["properties"], *rules["semaphore"]["properties"]} <= named


@pytest.mark.parametrize(
    "words",
    [
        ", but not ended yet (role: ",
        ", but in force only when Consul has confirmed it",
        ", but it waits until ",
        "its new settings are not in force yet",
    ],
)
def test_a_later_effect_is_reported_in_the_documented_words(words: str) -> None:
    names = ("daemon/operator.py", "reporting/telemetry/item_warnings.py")
    assert any(words in (ROOT / "supervisor" / name).read_text() for name in names)
    assert words in " ".join(PAGE.read_text().split())


def test_the_page_has_the_time_that_reload_waits() -> None:
    assert f"in force, {IN_FORCE_S:g} s at most" in " ".join(PAGE.read_text().split())


def test_the_page_has_the_exception_for_who_is_not_in_line() -> None:
    """tests/unit/core/test_reload.py tries it."""
    assert "Of one that is not in line: changed" in PAGE.read_text()


@pytest.mark.parametrize(
    "change",
    [
        {"consul": {"address": "http://127.0.0.1:1"}},
        {"consul": {"datacenter": "dc9"}},
        {"consul": {"namespace": "n"}},
        {"consul": {"partition": "p"}},
        {"consul": {"address": "https://127.0.0.1:8500", "tls": {"verify": False}}},
        {"control_socket": "/run/other"},
        {"control_group": "root"},
        {"state_dir": "/srv/other"},
    ],
    ids=str,
)
def test_the_page_names_the_changes_that_need_a_restart(change: dict[str, Any], tmp_path: Path) -> None:
    """The page has a remedy for each of them."""
    running, config = config_of(tmp_path, BEFORE), config_of(tmp_path, {**BEFORE, **change})
    with pytest.raises(CannotReload) as refused:
        reloaded(config, running)
    ((key, value),) = change.items()
    names = [f"consul.{name}" for name in value] if key == "consul" else [key]
    assert all(name in str(refused.value) for name in names)
    remedies = {name: does for keys, does in rows(PAGE, "key | what to do") for name in codes(keys)}
    restart = "systemctl stop" if key == "state_dir" else "systemctl restart"
    assert restart in str(refused.value)
    assert all(restart in remedies[name] or remedies[name].startswith("the same") for name in names)


@pytest.mark.parametrize(
    "change",
    [
        {"consul": {"token": "t"}},
        {"consul": {"token_file": "/t"}},
        {"consul": {"leader_change": "3s"}},
        {"log": {"level": "debug"}},
        {"log": {"format": "json"}},
        {"http": {"listen": "127.0.0.1:0"}},
        {"fleet": {"prefix": "p"}},
    ],
    ids=str,
)
def test_the_page_names_the_settings_of_the_process_that_a_reload_applies(
    change: dict[str, Any], tmp_path: Path
) -> None:
    running, config = config_of(tmp_path, BEFORE), config_of(tmp_path, {**BEFORE, **change})
    assert reloaded(config, running) is config
    applied = PAGE.read_text().partition("**What is applied to the process at once**")[2].partition("\n\n")[0]
    ((key, values),) = change.items()
    assert {f"{key}.{name}" for name in values} <= set(codes(applied))
