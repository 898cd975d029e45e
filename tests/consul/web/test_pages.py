"""docs/http.md is true: each field of the status with its type, each path, each limit."""

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from supervisor.core import outcomes as o
from supervisor.core.contender.creation import new_contender
from supervisor.core.requests import SlotRecord
from supervisor.core.settings import SemaphoreSettings, ServiceSettings, SessionSettings
from supervisor.core.times import NEVER
from supervisor.reporting.control.server import LIMITS as CONTROL
from supervisor.reporting.http_server import HttpRequest
from supervisor.reporting.telemetry.formatting import DETAIL_CHARS_MAX
from supervisor.reporting.telemetry.item_history import ATTEMPTS_MAX, TRANSITIONS_MAX
from supervisor.reporting.telemetry.status import VALUE_BYTES_MAX, VERSION
from supervisor.reporting.web.listener import LIMITS, RETRY_S
from supervisor.reporting.web.routes import METHODS
from tests.consul.web.test_status import TENURE, Stage, happenings
from tests.support.pages import HTTP as PAGE
from tests.support.pages import first_codes, rows
from tests.unit.runtime.test_watchdogs import holder
from tests.unit.telemetry.test_outage import riding
from tests.unit.telemetry.test_watchdog import status_of

TYPES = {str: "text", int: "number", float: "number", bool: "true or false", type(None): "null"}


def found(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Return every path of the status with the type of its value."""
    if isinstance(value, dict):
        if path and path not in ("daemon", "consul") and not path.endswith("[]"):
            yield path, "mapping"
        for key, part in value.items():
            yield from found(part, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        yield path, "list"
        for part in value:
            if isinstance(part, dict):
                yield from found(part, f"{path}[]")
            else:
                assert isinstance(part, str), path
    else:
        yield path, TYPES[type(value)]


def seen() -> dict[str, set[str]]:
    """Return the paths and types of many statuses."""
    stage = Stage()
    statuses = [stage.told for _ in happenings(stage)]
    stage = Stage(tenure=TENURE)
    stage.history.fleet.service = "consul-supervisor"
    stage.status._path = Path("/etc/consul-supervisor")
    stage.answers(o.KeyView(5))
    view = o.KeyView(5, "s", b"me", 3, 5, 1)
    stage.change(lock=replace(stage.node.by_name["n"].lock, view=view))
    stage.answers(view)
    statuses.append(stage.told)
    named = replace(stage.node.by_name["n"].settings, service=ServiceSettings("n", "n"))
    stage.change(settings=named)
    statuses.append(stage.told)
    observer = replace(stage.node.by_name["n"].settings, contend=False)
    stage.change(settings=observer)
    statuses.append(stage.told)
    statuses += [slots(), *paused(), riding(now=100.0).told, json.loads(status_of(holder()).body())]
    types: dict[str, set[str]] = {}
    for status in statuses:
        for path, kind in found(status):
            types.setdefault(path, set()).add(kind)
    return types


def paused() -> Iterator[dict[str, Any]]:
    """Yield statuses of a paused election, by users with and without a name and a reason."""
    for until, about in ((NEVER, {"user": "root", "note": "disk swap"}), (1e9, dict[str, str]())):
        stage = Stage()
        stage.change(paused_until=until)
        stage.history.fleet.paused_everywhere["n"] = "paused everywhere by ann@n1"
        stage.history.events.add("command-received", {"verb": "pause", "item": "n", "uid": 0, **about})
        yield stage.told


def slots() -> dict[str, Any]:
    """Return the status of a semaphore with a holder."""
    settings = SemaphoreSettings("n", "service/n/.lock", b"{}", SessionSettings("n"), limit=3)
    one = new_contender(settings, spread=0.0, instance="i")
    lock = o.LockKey(1, 2, SlotRecord(3, ("s",)))
    view = o.SlotsView(5, lock, (o.ContenderKey("s", "s", b"{}", 1, 1),))
    stage = Stage()
    tenure = replace(TENURE, slot=0)
    stage.node.by_name["n"] = replace(one, lock=replace(one.lock, view=view), tenure=tenure)
    stage.answers(view)
    return stage.told


def documented() -> dict[str, set[str]]:
    """Return every path of the page with the types that it may have."""
    told = {path.strip("`"): re.split(" or (?!false)", kind) for path, kind, _ in rows(PAGE, "field")}
    return {path: {"list" if kind.startswith("list") else kind for kind in told[path]} for path in told}


def assert_documented(status: dict[str, Any]) -> None:
    """Check that each part of the status has exactly the fields of the page, with their types."""
    fields, known = set(found(status)), documented()
    parts = {path.rpartition(".")[0] for path, _ in fields}
    assert {path for path, _ in fields} == {path for path in known if path.rpartition(".")[0] in parts}
    assert [(path, kind) for path, kind in fields if kind not in known[path]] == []


def test_every_field_is_documented_with_its_type_and_every_documented_one_is_served() -> None:
    assert seen() == documented()


def test_the_version_on_the_page_is_that_of_the_status() -> None:
    assert Stage().told["version"] == VERSION == 1
    assert f"`version` is {VERSION}." in PAGE.read_text()


def test_the_documented_paths_are_those_that_are_served() -> None:
    """Each documented path has its page, any other path is 404, and another method is 405."""
    stage = Stage(tenure=TENURE)
    for path in first_codes(PAGE, "path"):
        assert stage.code(path.replace("NAME", "n")) == 200, path
    others = {"/leader/NAME", "/holder/NAME", "/metrics", "/v1/fleet"}
    assert {*stage.routes._pages} | others == set(first_codes(PAGE, "path"))
    assert "are GET, HEAD and OPTIONS." in PAGE.read_text() and METHODS == ("GET", "HEAD", "OPTIONS")
    assert stage.code("/none") == 404
    assert asyncio.run(stage.routes.answer(HttpRequest("POST", "/v1/status", (), b""))).status == 405


def test_the_limits_on_the_page_are_those_of_the_server() -> None:
    told = [[cell.split()[0] for cell in row[1:]] for row in rows(PAGE, "of")]
    kept = [
        [f"{value:g}" for value in (getattr(LIMITS, name), getattr(CONTROL, name))]
        for name in (
            "clients_max", "slow_readers_max", "head_bytes_max", "body_bytes_max",
            "receive_s", "send_s", "idle_s",
        )
    ]  # fmt: skip
    assert told == kept


@pytest.mark.parametrize(
    "words",
    [
        f"at most {TRANSITIONS_MAX}",
        f"the newest {ATTEMPTS_MAX}",
        f"cut after {VALUE_BYTES_MAX} bytes",
        f"after {DETAIL_CHARS_MAX} characters",
        f"every {RETRY_S:g} seconds",
    ],
)
def test_a_figure_in_words_is_that_of_the_program(words: str) -> None:
    assert words in " ".join(PAGE.read_text().split())
