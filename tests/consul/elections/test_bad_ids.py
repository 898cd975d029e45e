"""A broken proxy puts an invalid session ID into a response: the supervisor does not use or keep it."""

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
def test_an_invalid_session_id_is_no_answer(scene: Scene, session: str) -> None:
    scene.proxy.answer("200 OK", json.dumps({"ID": session}), "PUT", "/session/create", times=1)
    a = scene.leader("a", consul={"address": scene.proxy.url})
    assert "no UUID" in a.wait_line("consul-fails")["why"]
    assert scene.calls("a") == ["acquire acquired"]


@pytest.mark.parametrize("session", BAD, ids=NAMES)
def test_an_invalid_session_id_on_record_is_forgotten(scene: Scene, session: str) -> None:
    """An earlier version wrote such records, and each start after that ended with 70."""
    a = Supervisor(scene.folder / "a", scene.config({scene.name: scene.item("a")}))
    scene.nodes["a"] = a
    a.state_dir.mkdir()
    settings = settings_line(replace(contender(), name=scene.name), ConsulSettings(scene.agent.url), ())
    state = state_line(Record(Step.SESSION, "k", session), (), identity_here(), "then")
    (a.state_dir / f"{scene.name}.journal").write_bytes(settings + state + b" ")
    a.start()
    a.wait_line("role", role="holding")
    assert scene.calls("a") == ["acquire acquired"]
