"""The commands that concern semaphores alone: ``limit``, and ``verify`` of a slot."""

import json
import signal
from pathlib import Path

import pytest

from tests.consul.semaphores.scene import SlotScene
from tests.support.supervisor import Supervisor, command, until


def limit(node: Supervisor, name: str, number: int | str) -> tuple[int, str]:
    done = command("limit", name, str(number), "--config", str(node.config_path))
    return done.returncode, done.stderr.strip()


def verify(scene: SlotScene, session: str, *more: str) -> tuple[int, str]:
    environ = {"CONSUL_HTTP_ADDR": scene.agent.url}
    done = command("verify", "--key", scene.key, "--session", session, *more, environ=environ)
    return done.returncode, done.stderr.strip()


@pytest.mark.long
def test_limit_prints_its_result_unless_it_is_quiet(scene: SlotScene, tmp_path: Path) -> None:
    assert scene.put_lock(json.dumps({"Limit": 3, "Holders": {}}).encode())
    config = tmp_path / "c.yaml"
    semaphores = {scene.name: {"prefix": scene.name, "limit": 3}}
    config.write_text(json.dumps({"consul": {"address": scene.agent.url}, "semaphores": semaphores}))

    def printed(number: int, *more: str) -> str:
        done = command("limit", scene.name, str(number), *more, "--config", str(config))
        assert (done.returncode, done.stderr, scene.lock()["Limit"]) == (0, "", number)
        return done.stdout

    assert printed(5) == f"{scene.name}: the limit in Consul is 5, before 3\n"
    assert printed(5) == f"{scene.name}: the limit in Consul is 5, as before\n"
    assert printed(4, "--quiet") == ""


@pytest.mark.long
def test_limit_is_not_lost_among_the_writes_of_contenders(scene: SlotScene) -> None:
    nodes = [scene.node(node) for node in "abcdef"]
    until(lambda: len(scene.holders()) == 3 and len(scene.line()) == 3, "three hold, three wait")
    for number in (2, 3, 1, 3, 2):
        leaving = next(node for node in scene.holders())
        scene.nodes[leaving].signal(signal.SIGTERM)
        assert limit(nodes[0], scene.name, number) == (0, "")
        assert scene.lock()["Limit"] == number
        assert scene.nodes[leaving].wait() == 0
        scene.restarts = True
        scene.nodes[leaving].start()
        until(lambda node=leaving: node in scene.line() + scene.holders(), f"{leaving} is back")  # type: ignore[misc]
    until(lambda: len(scene.holders()) >= 2, "they hold")


@pytest.mark.long
def test_limit_reports_why_it_cannot_be_changed(scene: SlotScene) -> None:
    a = scene.holder("a")
    code, why = limit(a, "nothing", 2)
    assert code == 2 and f"cannot find semaphore nothing in {a.config_path}: it has {scene.name}" in why
    assert limit(a, scene.name, 0)[0] == 2 and limit(a, scene.name, "many")[0] == 2
    assert a.stop() == 0
    scene.agent.kv_delete(scene.key)
    code, why = limit(a, scene.name, 2)
    assert code == 1 and "nobody has made it yet, so the file's limit counts" in why
    assert scene.put_lock(b"garbage")
    code, why = limit(a, scene.name, 2)
    assert code == 1 and "it is no JSON" in why
    scene.agent.kv_delete(scene.key)


@pytest.mark.long
def test_verify_reports_whether_the_holder_still_has_its_slot(scene: SlotScene) -> None:
    scene.limit = 1
    a = scene.holder("a")
    scene.waiter("b")
    holder, waiter = scene.session_of("a"), scene.session_of("b")
    assert verify(scene, holder) == (0, "")
    told = scene.wait(node="a", event="acquire")
    assert verify(scene, told.session, "--lock-index", str(told.lock_index)) == (0, "")
    code, why = verify(scene, waiter)
    assert code == 1 and "the session has no slot" in why
    assert a.stop() == 0
    code, why = verify(scene, holder)
    assert code == 1 and "the session has no contender key" in why
