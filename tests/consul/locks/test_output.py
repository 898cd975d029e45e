"""Standard error of ``lock`` may be full or broken, which changes neither the work nor the exit code."""

import json
import os
import select
from collections.abc import Iterator
from contextlib import closing
from typing import IO

import pytest

from tests.consul.locks.lockers import SHORT, SLEEP, Lockers
from tests.support.supervisor import until

FILL = "yes >&2 &"  # it goes on until standard error takes no more, and then it waits
UNTIL_GO = 'until [ -e "$RECORDS.go" ]; do sleep 0.02; done'
NODE = "\x1b]0;pwned\x07\nbad\u202e"


@pytest.fixture
def unread() -> Iterator[IO[bytes]]:
    """Return a standard error that nobody reads."""
    reader, writer = os.pipe()
    with closing(os.fdopen(writer, "wb")) as pipe:
        yield pipe
    os.close(reader)


def wait_full(pipe: IO[bytes]) -> None:
    """Return when the command has filled the pipe to which ``lock`` writes its notices."""
    until(lambda: not select.select([], [pipe], [], 0)[1], "standard error is full")


def go(lockers: Lockers) -> None:
    """Let the command go on."""
    lockers.records.with_suffix(".go").touch()


@pytest.fixture(params=["no reader", "full disk"])
def unwritable(request: pytest.FixtureRequest) -> Iterator[IO[bytes]]:
    """Return a standard error on which each write fails."""
    if request.param == "full disk":
        with open("/dev/full", "wb") as full:
            yield full
        return
    reader, writer = os.pipe()
    os.close(reader)
    with closing(os.fdopen(writer, "wb")) as broken:
        yield broken


def test_a_full_standard_error_does_not_keep_the_lock(lockers: Lockers, unread: IO[bytes]) -> None:
    """The end of the command is explained on a pipe that takes nothing, and then the lock is released."""
    holder = lockers.holder("--verbose", body=f"{FILL}\n{UNTIL_GO}; exit 4", stderr=unread)
    wait_full(unread)
    go(lockers)
    assert holder.wait() == 4
    assert lockers.session() == "" and lockers.is_waiting(0)


@pytest.mark.long
def test_a_notice_on_a_full_standard_error_lets_no_rival_hold(lockers: Lockers, unread: IO[bytes]) -> None:
    """The rival waits for longer than a session that nobody renews lives, and its prune delay."""
    options = (*SHORT, "-n", "2")
    holder = lockers.holder(*options, key=lockers.prefix, body=f"{FILL}\n{SLEEP}", stderr=unread)
    wait_full(unread)
    record = lockers.agent.kv_get(f"{lockers.prefix}/.lock")
    assert record is not None
    lowered = json.dumps({**json.loads(record["Value"]), "Limit": 1}).encode()
    query = {"flags": record["Flags"], "cas": record["ModifyIndex"]}
    assert lockers.agent.kv_put(f"{lockers.prefix}/.lock", lowered, **query)
    rival = lockers.start(*options, "--wait", "15s", name="b", key=lockers.prefix)
    assert rival.wait() == 1
    assert lockers.lines("b") == [] and holder.process.poll() is None


def test_the_command_runs_and_its_exit_code_is_passed_on_without_a_standard_error(
    lockers: Lockers, unwritable: IO[bytes]
) -> None:
    locker = lockers.start("--verbose", body="exit 4", stderr=unwritable)
    assert locker.wait() == 4
    assert lockers.lines("a", "begin") and lockers.session() == ""


def test_an_error_that_nobody_can_read_has_its_exit_code(lockers: Lockers, unwritable: IO[bytes]) -> None:
    assert lockers.start(argv=["no-such-program"], stderr=unwritable).wait() == 127
    short = lockers.start("--lock-delay", "5s", stderr=unwritable)
    assert short.wait() == 78


def test_a_value_in_consul_does_not_act_on_the_terminal(lockers: Lockers) -> None:
    session = lockers.agent.session_create(TTL="60s")
    lockers.agent.acquire(lockers.key, session, json.dumps({"Node": NODE}).encode())
    code, _, error = lockers.start("--wait", "0", "--verbose").end()
    assert code == 1 and f"\\x1b]0;pwned\\x07\\nbad\\u202e holds it with session {session}\n" in error
    assert [letter for letter in error if letter != "\n" and not letter.isprintable()] == []
    lockers.agent.session_destroy(session)
