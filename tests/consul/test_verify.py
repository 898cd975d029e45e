"""``verify``, by which a resource checks a sequencer that a client presents, on a real Consul."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.consul import Agent
from tests.support.supervisor import command, until

GOOD, NOT, USAGE, CANNOT_TELL, CONFIGURATION = 0, 1, 2, 69, 78
SOME_SESSION = "2f8e9dd4-3c55-4c9a-9a0e-0f3c1c7a8a11"


def verify(agent: Agent, key: str, session: str, lock_index: int | None = None) -> tuple[int, str]:
    """Run ``verify``, and return its exit code and standard error; standard output must be blank."""
    index = [] if lock_index is None else ["--lock-index", str(lock_index)]
    done = command(
        "verify", "--key", key, "--session", session, *index, environ={"CONSUL_HTTP_ADDR": agent.url}
    )
    assert done.stdout == "" and "Traceback" not in done.stderr
    return done.returncode, done.stderr


def why_not(agent: Agent, key: str, session: str, lock_index: int | None = None) -> str:
    """Return the reason of a no."""
    code, error = verify(agent, key, session, lock_index)
    begin = f"consul-supervisor: no longer the holder of {key}: "
    assert code == NOT and error.startswith(begin) and error.count("\n") == 1, error
    return error.removeprefix(begin).strip()


@pytest.fixture
def key(unique: str) -> str:
    return f"{unique}/leader"


@pytest.fixture
def session(shared_agent: Agent, key: str) -> Iterator[str]:
    """Return a session that holds the key."""
    made = shared_agent.session_create(TTL="60s", LockDelay="0s")
    assert shared_agent.acquire(key, made, b"a")
    yield made
    shared_agent.session_destroy(made)


def lock_index(agent: Agent, key: str) -> int:
    entry = agent.kv_get(key)
    assert entry is not None
    return int(entry["LockIndex"])


def test_the_holders_sequencer_is_good_without_output(shared_agent: Agent, key: str, session: str) -> None:
    assert verify(shared_agent, key, session) == (GOOD, "")
    assert verify(shared_agent, key, session, lock_index(shared_agent, key)) == (GOOD, "")


@pytest.mark.parametrize(
    "end",
    [
        lambda agent, key, session: agent.release(key, session),
        lambda agent, key, session: agent.session_destroy(session),
        lambda agent, key, session: agent.kv_delete(key),
    ],
    ids=["released", "session ended", "key deleted"],
)
def test_a_lock_that_has_ended_is_a_no(
    end: Callable[[Agent, str, str], object], shared_agent: Agent, key: str, session: str
) -> None:
    end(shared_agent, key, session)
    assert why_not(shared_agent, key, session) == "nobody holds it"


def test_a_sequencer_of_an_earlier_holder_is_a_no(shared_agent: Agent, key: str, session: str) -> None:
    shared_agent.session_destroy(session)
    other = shared_agent.session_create(TTL="60s")
    assert shared_agent.acquire(key, other)
    assert why_not(shared_agent, key, session) == "another session holds it"


def test_a_session_that_locked_the_key_again_is_a_no_by_its_lock_index(
    shared_agent: Agent, key: str, session: str
) -> None:
    """Sessions of other clients may lock again. Without --lock-index nothing shows the second lock."""
    before = lock_index(shared_agent, key)
    shared_agent.release(key, session)
    assert shared_agent.acquire(key, session)
    assert why_not(shared_agent, key, session, before) == (
        f"the session has locked it anew: its LockIndex is {before + 1}, not {before}"
    )
    assert verify(shared_agent, key, session) == (GOOD, "")


def test_a_plain_put_over_the_key_leaves_the_sequencer_good(
    shared_agent: Agent, key: str, session: str
) -> None:
    """The lock is still held, but Consul has set the LockIndex to 0, which proves nothing."""
    before = lock_index(shared_agent, key)
    shared_agent.kv_put(key, b"somebody's")
    assert (before, lock_index(shared_agent, key)) == (1, 0)
    assert verify(shared_agent, key, session, before) == (GOOD, "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--key", "a"),
        ("--session", SOME_SESSION),
        ("--key", "a", "--session", ""),
        ("--key", "a", "--session", "x"),
        ("--key", "a", "--session", f"{SOME_SESSION}\n"),
        ("--key", "", "--session", SOME_SESSION),
        ("--key", "/a", "--session", SOME_SESSION),
        ("--key", "a", "--session", SOME_SESSION, "--lock-index", "-1"),
        ("--key", "a", "--session", SOME_SESSION, "--lock-index", ""),
        ("--key", "a", "--session", SOME_SESSION, "--lock-index", "0x1"),
        ("--key", "a", "--session", SOME_SESSION, "--lock-index", "9" * 5000),
    ],
)
def test_an_invalid_sequencer_is_wrong_usage_and_never_good(arguments: tuple[str, ...]) -> None:
    """Above all an empty session, because a free key shows an empty one."""
    done = command("verify", *arguments)
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert done.stderr.startswith("usage: ") and "Traceback" not in done.stderr


class Leaderless(Agent):
    """A server that waits for another server for ever."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, persistent=True)
        self._config["bootstrap_expect"] = 2

    def _ready(self) -> bool:
        def answers() -> bool:
            try:
                return self.call("GET", "/status/leader").status == 200
            except OSError:
                return False

        return until(answers, "Consul answers")


@pytest.mark.long
def test_verify_has_no_answer_when_consul_has_no_leader(tmp_path: Path) -> None:
    with Leaderless(tmp_path / "consul") as agent:
        code, error = verify(agent, "a", SOME_SESSION)
    assert code == CANNOT_TELL and "No cluster leader" in error and error.count("\n") == 1
