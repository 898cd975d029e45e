"""``status`` and ``holds``, run as operators and cron do, beside a real daemon and beside other servers."""

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from supervisor.reporting.control import fetch
from tests.support.consul import Agent
from tests.support.supervisor import Supervisor, command, until
from tests.support.unix_peer import UnixPeer, answer_of

DONE, NEGATIVE, USAGE, UNREACHABLE, CONFIGURATION = 0, 1, 2, 69, 78
UNIQUE = "of-test-status"
EVIL = "\x1b[2J\x1b]0;owned\x07 日本"


class Daemon(Supervisor):
    """A daemon that leads ``held``, waits for ``other``, led by a hostile value, and observes ``seen``."""

    def __init__(self, folder: Path, agent: Agent) -> None:
        keys = {name: {"key": f"{UNIQUE}/{name}"} for name in ("held", "other", "seen")}
        items = {
            "held": {**keys["held"], "on_acquire": [{"exec": ["true"]}]},
            "other": keys["other"],
            "seen": {**keys["seen"], "contend": False},
        }
        config = {
            "consul": {"address": agent.url},
            "elections": items,
            "semaphores": {"slots": {"limit": 2, "prefix": f"{UNIQUE}/slots"}},
        }
        super().__init__(folder, config)


@pytest.fixture(scope="module")
def daemon(shared_agent: Agent) -> Iterator[Daemon]:
    """Return a daemon that the tests of this module only ask."""
    rival = shared_agent.session_create(TTL="600s")
    assert shared_agent.acquire(f"{UNIQUE}/other", rival, EVIL.encode())
    with tempfile.TemporaryDirectory(prefix="status-") as folder:
        made = Daemon(Path(folder), shared_agent)
        with made:
            for name in ("held", "slots"):
                made.wait_line("role", item=name, role="holding")
            until(lambda: made.ask("holds", "held").returncode == DONE, "on_acquire has finished")
            yield made
            assert made.stop() == 0
            made.assert_no_fault()
            shared_agent.session_destroy(rival)


@pytest.mark.parametrize(("key", "contend"), [("namespace", True), ("partition", True), ("namespace", False)])
def test_a_node_whose_item_consul_refuses_for_good_is_not_healthy(
    key: str, contend: bool, shared_agent: Agent, tmp_path: Path, unique: str
) -> None:
    consul = {"address": shared_agent.url, key: "p"}
    config = {"consul": consul, "elections": {"app": {"key": f"{unique}/a", "contend": contend}}}
    with Supervisor(tmp_path, config) as node:
        node.wait_line("consul-refused" if contend else "consul-fails", item="app")
        until(lambda: not node.status()["healthy"], "the node is not healthy")
        (trouble,) = node.status()["troubles"]
        what = "taken over" if contend else "observed"
        assert trouble.startswith(f"app cannot be {what}: Consul refuses what the file asks for: 400 ")
        assert trouble.endswith(f": remove consul.{key} (or CONSUL_{key.upper()}): this Consul has none")
        assert node.ask("status", "--exit-code").returncode == NEGATIVE


# --- a real daemon -------------------------------------------------------------------------------


def test_status_is_a_table_of_the_daemons_items(daemon: Daemon) -> None:
    done = daemon.ask("status")
    assert (done.returncode, done.stderr) == (DONE, "")
    rows = {line.split()[0]: line for line in done.stdout.splitlines()[3:7] if not line.startswith("*")}
    held = [line for line in done.stdout.splitlines() if line.startswith("* ")]
    assert [line.split()[1:4] for line in held] == [
        ["held", "election", "holding"],
        ["slots", "semaphore", "holding"],
    ]
    assert "ok on_acquire[0]" in held[0] and "1 of 2: " in held[1]
    assert rows["other"].split()[1:3] == ["election", "waiting"]
    assert r"\x1b[2J\x1b]0;owned\x07 日本" in rows["other"]
    assert rows["seen"].split()[1:3] == ["election", "observer"]
    assert "\x1b" not in done.stdout and "\x07" not in done.stdout


def test_json_is_that_of_the_daemon_and_one_item_has_the_form_of_all(daemon: Daemon) -> None:
    whole, one = (json.loads(daemon.ask("status", *name, "--json").stdout) for name in ((), ("held",)))
    assert whole["version"] == 1 and [item["name"] for item in one["items"]] == ["held"]
    assert list(whole) == list(one) and whole["daemon"]["pid"] == daemon.pid
    held = next(item for item in whole["items"] if item["name"] == "held")
    assert list(held) == list(one["items"][0]) and held["transitions"]


def test_status_shows_one_item_and_reports_an_unknown_one(daemon: Daemon) -> None:
    text = daemon.ask("status", "held").stdout
    assert "held" in text and "other" not in text
    done = daemon.ask("status", "none")
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert done.stderr == (
        "consul-supervisor: cannot find none: no such election or semaphore, "
        "there are held, other, seen, slots\n"
    )


def test_a_name_that_nearly_exists_is_refused_with_the_one_that_was_meant(daemon: Daemon) -> None:
    meant = " othr: no such election or semaphore, there are held, other, seen, slots, did you mean other?\n"
    for verb in ("status", "holds", "pause", "step-down"):
        done = daemon.ask(verb, "othr")
        assert (done.returncode, done.stdout) == (USAGE, "") and done.stderr.endswith(meant)


# --- another server in place of the daemon --------------------------------------------------------


def holds(folder: Path, answer: Sequence[bytes], **how: float | bool) -> bool | None:
    with UnixPeer(folder / "p.sock", lambda: answer, **how) as peer:  # type: ignore[arg-type]
        try:
            return fetch.holds(str(folder / "p.sock"), "app", within_s=0.7)
        finally:
            assert peer.asked[0].startswith(b"GET /holder/app HTTP/1.1\r\n")


def test_holds_decides_by_status_and_name(folder: Path) -> None:
    assert holds(folder, answer_of(b"app: holding\n")) is True
    assert holds(folder, answer_of(b"app: waiting\n", 503)) is False
    assert holds(folder, answer_of(b"{}", 404)) is None


@pytest.mark.parametrize(
    "answer",
    [
        [],
        [b"\x00\x01\x02"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\napp: "],
        answer_of(b"<html>welcome</html>"),
        answer_of(b"other: holding\n"),
        answer_of(b"Service Unavailable", 503),
        answer_of(b"app: holding\n", 500),
        answer_of(b"", 204),
    ],
    ids=["nothing", "garbage", "half", "another-page", "another-name", "another-503", "500", "empty"],
)
def test_a_response_that_is_no_daemons_is_neither_yes_nor_no(folder: Path, answer: Sequence[bytes]) -> None:
    with pytest.raises(fetch.DaemonUnreachable, match="^cannot ask the daemon: "):
        holds(folder, answer)


def test_one_deadline_covers_a_server_that_trickles_or_is_silent(folder: Path) -> None:
    slow = [bytes([letter]) for letter in answer_of(b"app: holding\n")[0]]
    for answer, how in ((slow, {"pause_s": 0.05}), ([], {"stay": True})):
        with pytest.raises(fetch.DaemonUnreachable, match="no answer from .* within 0.7 s"):
            holds(folder, answer, **how)


def test_an_endless_response_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "BODY_BYTES_MAX", 1000)
    with pytest.raises(fetch.DaemonUnreachable, match="its answer has more than 1000 bytes"):
        holds(folder, answer_of(b"app: holding\n" + b"x" * 2000))


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        (b"nonsense", 200, "200 not an answer of a consul-supervisor"),
        (b"[]", 200, "200 not an answer of a consul-supervisor"),
        (b'{"error": "cannot take commands from user id 7"}', 403, "403 cannot take commands from user id 7"),
        (b'{"version": 2, "items": []}', 200, "it is of version 2, not 1"),
    ],
)
def test_a_status_that_cannot_be_read_is_69(folder: Path, body: bytes, status: int, why: str) -> None:
    with UnixPeer(folder / "p.sock", lambda: answer_of(body, status)):
        done = command("status", "--socket", str(folder / "p.sock"))
    assert (done.returncode, done.stdout) == (UNREACHABLE, "")
    assert why in done.stderr and done.stderr.count("\n") == 1
