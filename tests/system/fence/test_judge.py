"""The judge finds what is wrong in stamps written by hand, and the device fails as it is told to."""

import socket
from collections.abc import Sequence

import pytest

from tests.system.emulated.machine import Line
from tests.system.fence.device import Device, Manner
from tests.system.fence.judge import End, judge, missed
from tests.system.watchdog.test_judge import acting as unguarded


def acting(begin: float, end: float, guard: str = "") -> list[Line]:
    """Return the stamps by which an application acts from one second to the other, behind that guard."""
    return [Line(begin, f"previous end: {guard}"), *unguarded(begin, end, 7)]


def missing(
    end: End,
    guard: str,
    *asked: str,
    old_until: float = 10.0,
    new_since: float | None = 18.0,
    shot_at: float = 17.0,
    shots: int = 1,
    reset: bool = False,
    more: Sequence[Line] = (),
) -> str:
    """Return what is missing for this end 2 to 11 s after a loss at 10 s, where the device was asked that.

    more: what the first node says after all that.
    """
    new = [] if new_since is None else acting(new_since, new_since + 2.0, guard)
    at = [(shot_at, name) for name in asked]
    old = [*acting(0.0, old_until, "none"), *more]
    verdict = judge(old, new, None if end is End.HELD else 10.0, at, reset=reset)
    return missed(verdict, end, 2.0, 11.0, "node-1", shots)


def test_what_is_expected_misses_nothing() -> None:
    assert missing(End.FENCED, "fenced", "node-1") == ""
    assert missing(End.SAID, "said") == ""
    assert missing(End.HELD, "", new_since=None) == ""
    assert missing(End.BOTH, "fenced", "node-1", old_until=20.0) == ""
    assert missing(End.WAITED, "waited", *["node-1"] * 9, shots=-9) == ""
    assert missing(End.CONFIRMED, "confirmed", "node-1", shots=-9) == ""


@pytest.mark.parametrize(
    "fault",
    [
        missing(End.FENCED, "fenced", "node-1", new_since=22.0),
        missing(End.FENCED, "fenced", "node-1", new_since=11.0),
        missing(End.FENCED, "fenced", "node-1", "node-2"),
        missing(End.FENCED, "fenced", "node-1", "node-2", shots=2),
        missing(End.FENCED, "fenced", *["node-1"] * 9),
        missing(End.FENCED, "fenced", "node-1", shot_at=18.1),
        missing(End.FENCED, "fenced", "node-1", reset=True),
        missing(End.FENCED, "fenced"),
        missing(End.WAITED, "waited", *["node-1"] * 9, shots=-3),
        missing(End.FENCED, "waited", "node-1"),
        missing(End.FENCED, "none", "node-1"),
        missing(End.FENCED, "fenced", "node-1", old_until=18.1),
        missing(End.SAID, "said", "node-1"),
        missing(End.HELD, "said"),
        missing(End.HELD, "", new_since=None, more=unguarded(12.1, 13.0, 7)),
        missing(End.HELD, "", new_since=None, more=[Line(10.0, "on_lose")]),
        missing(End.BOTH, "fenced", "node-1", old_until=21.5),
    ],
)
def test_each_fault_is_told_with_what_should_have_happened(fault: str) -> None:
    assert " shots, of node-1, before the other node acts" in fault


@pytest.mark.parametrize(
    ("manner", "answer", "off"),
    [
        (Manner.WORKS, b"off\n", ["node-1"]),
        (Manner.FAILS, b"failed\n", []),
        (Manner.LIES, b"off\n", []),
    ],
)
def test_the_device_fails_as_told(manner: Manner, answer: bytes, off: list[str]) -> None:
    done: list[str] = []
    with Device(manner, {"node-1": lambda: done.append("node-1")}) as device:
        assert asked(device.port, "node-1") == answer
        assert asked(device.port, "node-2") == (answer if manner is Manner.LIES else b"failed\n")
        assert [name for _, name in device.asked] == ["node-1", "node-2"]
    assert done == off


def asked(port: int, target: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 10.0) as connection:
        connection.sendall(f"{target}\n".encode())
        return connection.makefile("rb").read()
