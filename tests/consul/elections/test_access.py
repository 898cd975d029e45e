"""Tokens that change, and an agent that refuses some requests by its own configuration."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.consul.conftest import MakeScene
from tests.consul.elections.scene import Scene
from tests.support.consul import Agent
from tests.support.guarded import Guarded, Made, write
from tests.support.supervisor import until

ROOMY = {"lock_delay": "20s", "ttl": "5s"}


@pytest.fixture
def scene(guarded: Guarded, make_scene: MakeScene[Scene]) -> Iterator[Scene]:
    """Return supervisors on the guarded agent."""
    with make_scene(guarded) as made:
        yield made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the file in which the supervisor finds its token."""
    return tmp_path / "token"


def contender(guarded: Guarded, scene: Scene) -> Made:
    """Create a token that may do only what an election needs."""
    return guarded.token_of(write(scene.key) + guarded.sessions_rule())


def renamed(file: Path, content: str) -> None:
    """Replace the file by a rename, as a careful tool does."""
    new = file.with_suffix(".new")
    new.write_text(content)
    new.rename(file)


def linked(file: Path, content: str) -> None:
    """Switch a symlink over, as tools that keep versions do."""
    version = file.with_name(f"{file.name}-{len(list(file.parent.iterdir()))}")
    version.write_text(content)
    link = file.with_suffix(".link")
    link.symlink_to(version)
    os.replace(link, file)


@pytest.mark.long
@pytest.mark.parametrize("replace", [renamed, linked])
def test_a_token_that_is_rotated_is_used_from_the_next_request_on(
    scene: Scene, guarded: Guarded, file: Path, replace: Callable[[Path, str], None]
) -> None:
    """An operator deletes the old token as soon as the log says that the new one is in use.

    The watch that began with the old token goes on to its end, and so does the session that the old token
    made.
    """
    first, second = contender(guarded, scene), contender(guarded, scene)
    file.write_text(first.secret)
    a = scene.leader("a", consul={"token_file": str(file)}, session=ROOMY)
    session = scene.session_of("a")
    replace(file, f"{second.secret}\n")
    assert str(file) in a.wait_line("token-renewed")["why"]
    guarded.forget(first)
    guarded.kv_put(scene.key, b"seen")
    scene.wait_told("a", "value-changed seen")
    renewals = len(a.lines("request", kind="renew session"))
    until(lambda: len(a.lines("request", kind="renew session")) > renewals + 1, "renewals with the new one")
    assert not a.lines("consul-denied") and not a.lines("token-file")
    assert scene.session_of("a") == session
    assert a.stop() == 0
    assert scene.calls("a") == ["acquire acquired", "lose shutdown"]
    assert not [made.secret for made in (first, second) if made.secret in a.log_text]


def test_a_token_file_that_is_corrected_is_used_without_a_restart(
    scene: Scene, guarded: Guarded, file: Path
) -> None:
    file.write_text("11111111-2222-3333-4444-555555555555\n")
    a = scene.node("a", consul={"token_file": str(file)})
    a.wait_line("exchange-failed", kind="create session")
    file.write_text(contender(guarded, scene).secret)
    a.wait_line("role", role="holding")


@pytest.mark.parametrize(
    ("blocks", "words", "remedy"),
    [
        ({"allow_write_http_from": ["10.99.0.0/16"]}, "Access is restricted", "allow_write_http_from"),
        ({"block_endpoints": ["/v1/session/"]}, "Endpoint is blocked", "block_endpoints"),
    ],
)
def test_a_refusal_by_the_agents_own_configuration_names_that(
    tmp_path: Path, make_scene: MakeScene[Scene], blocks: dict[str, list[str]], words: str, remedy: str
) -> None:
    """No right of a token is missing: the agent allows the write only from another address."""
    with Agent(tmp_path / "server") as server:
        agent = Agent(tmp_path / "closed", servers=server, config={"http_config": blocks})
        with agent, make_scene(server) as scene:
            a = scene.node("a", consul={"address": agent.url})
            why = a.wait_line("consul-denied")["why"]
            assert words in why and f"http_config.{remedy}" in why and "policy" not in why
