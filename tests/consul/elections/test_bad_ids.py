"""A broken proxy calls something the ID of a session that is none: it is no answer, and nothing keeps it."""

import json
from dataclasses import replace

import pytest

from supervisor.config import ConsulSettings
from supervisor.core.actions import Record, Step
from supervisor.journal import identity_here
from supervisor.journal.format import settings_line, state_line
from tests.consul.elections.scene import Scene
from tests.support.supervisor import Supervisor
from tests.unit.core.play import contender

BAD = ["../../kv/x", "\ud800"]
NAMES = ["path", "surrogate"]


@pytest.mark.parametrize("session", BAD, ids=NAMES)
def test_an_id_that_is_none_is_no_answer(scene: Scene, session: str) -> None:
    scene.proxy.answer("200 OK", json.dumps({"ID": session}), "PUT", "/session/create", times=1)
    a = scene.leader("a", consul={"address": scene.proxy.url})
    assert "no UUID" in a.wait_line("consul-fails")["why"]
    assert scene.calls("a") == ["acquire acquired"]


@pytest.mark.parametrize("session", BAD, ids=NAMES)
def test_one_that_is_on_record_already_is_forgotten(scene: Scene, session: str) -> None:
    """By an earlier version; each start after that ended with 70."""
    a = Supervisor(scene.folder / "a", scene.config({scene.name: scene.item("a")}))
    scene.nodes["a"] = a
    a.state_dir.mkdir()
    settings = settings_line(replace(contender(), name=scene.name), ConsulSettings(scene.agent.url), ())
    state = state_line(Record(Step.SESSION, "k", session), (), identity_here(), "then")
    (a.state_dir / f"{scene.name}.journal").write_bytes(settings + state + b" ")
    a.start()
    a.wait_line("role", role="holding")
    assert scene.calls("a") == ["acquire acquired"]
