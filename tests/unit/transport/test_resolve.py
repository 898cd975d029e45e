"""Name look-ups: a child that can be killed does them, and an old answer is better than none."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor.adapters.transport import ExchangeFailed, FailureKind, Transport, resolve
from tests.support.loop_time import skip
from tests.support.patience import patient
from tests.unit.transport import harness
from tests.unit.transport.harness import PATIENT_S, failure_of, get, put, served, transport
from tests.unit.transport.peer import AGAIN, HOLD, READ, Peer, answer
from tests.unit.transport.test_hostile import full_queue

SERVES = [READ, answer(b"one"), AGAIN]
Getent = Callable[[str], None]


@pytest.fixture
def getent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Getent:
    """Install a getent of these shell lines first on PATH, which notes each call in ``calls``."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def install(lines: str) -> None:
        script = folder / "getent.new"
        script.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n{lines}\n')
        script.chmod(0o755)
        script.rename(folder / "getent")

    return install


def calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "calls").read_text().splitlines()


def says(*addresses: str) -> str:
    """Return shell lines that print what getent prints for a name with these addresses."""
    lines = [f"{each}  {kind} consul.test" for each in addresses for kind in ("STREAM", "DGRAM ", "RAW   ")]
    return "\n".join(f"echo '{line}'" for line in lines)


async def read(it: Transport, port: int, timeout_s: float = PATIENT_S) -> bytes:
    request = get(f"http://consul.test:{port}")
    return (await it.exchange(request, timeout_s=timeout_s, fresh=True)).content


async def failing_read(port: int, timeout_s: float = PATIENT_S) -> ExchangeFailed:
    async with transport(f"http://consul.test:{port}") as it:
        request = get(f"http://consul.test:{port}")
        return await failure_of(it.exchange(request, timeout_s=timeout_s, fresh=True))


async def test_localhost_is_looked_up_as_the_system_does() -> None:
    """This test uses the real getent."""
    with Peer(SERVES) as peer:
        url = f"http://localhost:{peer.port}"
        async with transport(url) as it:
            assert ((await it.exchange(get(url), timeout_s=PATIENT_S, fresh=False)).content) == b"one"


async def test_an_address_needs_no_look_up(getent: Getent, tmp_path: Path) -> None:
    getent("exit 2")
    async with served(SERVES) as (peer, it):
        await it.exchange(get(peer.url), timeout_s=PATIENT_S, fresh=False)
    assert not (tmp_path / "calls").exists()


async def test_many_exchanges_share_one_look_up_and_its_answer_for_a_while(
    getent: Getent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """100 watches and their renewals must not start a child each."""
    monkeypatch.setattr(resolve, "ANSWER_FRESH_S", PATIENT_S)
    getent("sleep 0.1; " + says("127.0.0.1"))
    with Peer(SERVES) as peer:
        async with transport(f"http://consul.test:{peer.port}") as it:
            await asyncio.gather(*(read(it, peer.port) for _ in range(10)))
            await read(it, peer.port)
    assert calls(tmp_path) == ["ahosts consul.test"]


def test_a_look_up_gets_no_secret_in_its_environment(
    getent: Getent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONSUL_HTTP_TOKEN", "s3cret")
    getent(f"env > {tmp_path}/environment; {says('127.0.0.1')}")
    with Peer(SERVES) as peer:
        asyncio.run(failing_read(1))
    assert "s3cret" not in (tmp_path / "environment").read_text()
    assert peer.port


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("exit 2", "the name is not known (getent exit 2)"),
        ("exit 0", "getent named no address"),
        ("echo 'nonsense STREAM consul.test'; echo; echo '-'", "getent named no address"),
        ("kill -9 $$", "the name is not known (getent exit -9)"),
        ("exec yes '127.0.0.1 STREAM consul.test'", "the name is not known (getent exit 1)"),  # and no memory
    ],
)
def test_a_failed_look_up_is_reported_with_its_reason(getent: Getent, lines: str, why: str) -> None:
    getent(lines)
    failure = harness.ends_without_stall(lambda: failing_read(1), PATIENT_S)
    assert failure.kind is FailureKind.RESOLVE
    assert str(failure) == f"cannot look up consul.test: {why}"


def test_a_missing_getent_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    failure = asyncio.run(failing_read(1))
    assert str(failure) == "cannot look up consul.test: cannot run getent: no such file or directory"


@pytest.mark.parametrize("lines", ["exec sleep 60", "trap '' TERM; while :; do :; done"])
def test_a_look_up_that_does_not_end_is_killed(getent: Getent, lines: str) -> None:
    """The look-up neither outlives its transport nor outlasts the deadline of the exchange."""
    getent(lines)
    failure = harness.ends_without_stall(lambda: failing_read(1, 0.3), 0.3)
    assert failure.kind is FailureKind.TIMEOUT
    assert str(failure) == "no answer from consul.test:1 within 0.3 s: still looking up consul.test"


async def test_an_unknown_name_is_not_looked_up_for_every_retry(
    getent: Getent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """100 elections that retry each second must not start 100 children."""
    monkeypatch.setattr(resolve, "ANSWER_REST_S", PATIENT_S)
    getent("exit 2")
    async with transport("http://consul.test:1") as it:
        for _ in range(5):
            request = get("http://consul.test:1")
            failure = await failure_of(it.exchange(request, timeout_s=PATIENT_S, fresh=False))
            assert failure.kind is FailureKind.RESOLVE
    assert len(calls(tmp_path)) == 1


async def test_closing_the_transport_kills_a_look_up(getent: Getent, tmp_path: Path) -> None:
    getent("exec sleep 60")
    before = len(harness.children())
    async with transport("http://consul.test:1") as it:
        it.prepare()
        while not (tmp_path / "calls").exists():
            await asyncio.sleep(0.01)
        assert len(harness.children()) == before + 1
    assert len(harness.children()) == before


@pytest.mark.parametrize("later", ["exit 2", "exec sleep 60"])
async def test_the_last_good_answer_serves_when_a_look_up_fails_or_hangs(
    getent: Getent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: str
) -> None:
    """A broken name server must not end a tenure, and only the first exchange waits for it."""
    monkeypatch.setattr(resolve, "ANSWER_FRESH_S", 0.2)
    monkeypatch.setattr(resolve, "LOOK_UP_S", 2 * PATIENT_S)
    getent(says("127.0.0.1"))
    with Peer(SERVES) as peer:
        async with transport(f"http://consul.test:{peer.port}") as it:
            await read(it, peer.port)
            getent(later)
            for _ in range(3):
                await asyncio.sleep(0.25)
                assert await read(it, peer.port) == b"one"
    assert len(calls(tmp_path)) >= 2


async def test_a_name_that_moved_is_looked_up_again_after_a_failure(
    getent: Getent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address that does not answer is used for one second more, and not for the rest of its time."""
    monkeypatch.setattr(resolve, "ANSWER_FRESH_S", 10 * PATIENT_S)
    monkeypatch.setattr(resolve, "STALE_PATIENCE_S", PATIENT_S)
    getent(says("127.0.0.2"))
    with Peer(SERVES) as peer:
        async with transport(f"http://consul.test:{peer.port}") as it:
            request = get(f"http://consul.test:{peer.port}")
            moved = await failure_of(it.exchange(request, timeout_s=PATIENT_S, fresh=True))
            assert moved.kind is FailureKind.REFUSED
            assert str(moved) == (f"cannot reach consul.test:{peer.port} (127.0.0.2): connection refused")
            getent(says("127.0.0.1"))
            skip(1.1)
            assert (await read(it, peer.port)) == b"one"


async def test_an_address_after_a_refusing_one_is_tried_and_later_tried_first(getent: Getent) -> None:
    getent(says("127.0.0.2", "127.0.0.1"))
    with Peer(SERVES) as peer:
        async with transport(f"http://consul.test:{peer.port}") as it:
            assert await read(it, peer.port) == b"one"
            assert await read(it, peer.port) == b"one"
        assert len(peer.seen()) == 2


async def test_an_address_that_does_not_answer_takes_only_its_share_of_the_deadline(getent: Getent) -> None:
    """The address that has answered is tried first from then on."""
    with full_queue("127.0.0.1") as port, Peer(SERVES, host="127.0.0.2", port=port):
        getent(says("127.0.0.1", "127.0.0.2"))
        async with transport(f"http://consul.test:{port}") as it:
            assert await read(it, port, timeout_s=patient(1.0)) == b"one"
            async with asyncio.timeout(PATIENT_S):  # its share would be twice that
                assert await read(it, port, timeout_s=4 * PATIENT_S) == b"one"


async def test_a_write_is_sent_to_one_address_only(getent: Getent) -> None:
    """The first address may have acted on the write, so no other one is tried once it has connected."""
    getent(says("127.0.0.1", "127.0.0.2"))
    with Peer([READ, HOLD]) as first, Peer(SERVES, host="127.0.0.2", port=first.port) as second:
        url = f"http://consul.test:{first.port}"
        async with transport(url) as it:
            timeout_s = patient(1.0)  # enough to send the request
            failure = await failure_of(it.exchange(put(url), timeout_s=timeout_s, fresh=True))
        assert failure.kind is FailureKind.TIMEOUT
        assert (len(first.seen()), second.seen()) == (1, [])
