"""The control socket as operators and strangers meet it: its file, its HTTP and the commands."""

import asyncio
import grp
import json
import os
import socket
import stat
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from supervisor.config import ControlSettings
from supervisor.reporting.control import ControlError, OperatorCommand, Reply, Result, Verb
from supervisor.reporting.control.fetch import DaemonUnreachable, ask
from supervisor.reporting.control.protocol import NOTE_CHARS_MAX, REST_S, InvalidCommand, command_of
from supervisor.reporting.control.server import Control
from supervisor.reporting.control.users import user_name
from supervisor.reporting.http_server import HttpAnswer, HttpRequest, HttpServer, Peer
from tests.support.supervisor import PATIENCE_S, command

DONE, NEGATIVE, USAGE, UNREACHABLE, CONFIGURATION = 0, 1, 2, 69, 78
NOBODY = 65534
GROUP = "daemon"  # every Linux has it, and it is not root's
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


class Standin:
    """A daemon with the election ``app``, which is waiting, and the commands that it got."""

    def __init__(self) -> None:
        self.asked: list[OperatorCommand] = []
        self.received: list[tuple[OperatorCommand, Peer]] = []
        self.noted: list[tuple[OperatorCommand, Result, Peer]] = []

    async def ask(self, asked: OperatorCommand) -> Reply:
        self.asked.append(asked)
        if asked.name not in (None, "app"):
            return Reply(Result.UNKNOWN, f"cannot {asked.verb} {asked.name}: no such election, it has app")
        if asked.verb is Verb.RECOVER:
            return Reply(Result.IMPOSSIBLE, "cannot recover app: it is not stuck (role: waiting)")
        return Reply(Result.DONE)

    async def read(self, request: HttpRequest) -> HttpAnswer:
        return HttpAnswer(200, f"{request.method} {request.target}".encode())

    def note(self, asked: OperatorCommand, reply: Reply | None, peer: Peer) -> None:
        if reply is None:
            self.received.append((asked, peer))
        else:
            self.noted.append((asked, reply.outcome, peer))


def control_of(path: Path, daemon: Standin | None = None, group: str | None = None) -> Control:
    daemon = daemon or Standin()
    return of_settings(ControlSettings(str(path), group, configured=True), daemon, [])


def of_settings(settings: ControlSettings, daemon: Standin, warnings: list[str]) -> Control:
    return Control(settings, daemon.ask, daemon.note, daemon.read, warnings.append)


@asynccontextmanager
async def served(path: Path, *, group: str | None = None) -> AsyncIterator[Standin]:
    """Yield a daemon behind a control socket, which is closed in the end."""
    daemon = Standin()
    control = control_of(path, daemon, group)
    await control.open()
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield daemon
    finally:
        await control.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def operate(*arguments: str, environ: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Run a command in a process of its own, and return exit code and both outputs."""
    done: subprocess.CompletedProcess[str] = await asyncio.to_thread(command, *arguments, environ=environ)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def connected(path: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.setblocking(False)
    try:
        sock.connect(str(path))
    except OSError:
        sock.close()
        raise
    return sock


async def spoken(sock: socket.socket, target: str, method: str = "POST") -> tuple[int, str, str]:
    """Send one request on this connection, and return status, head and body of the answer."""
    reader, writer = await asyncio.open_unix_connection(sock=sock)
    writer.write(f"{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split()[1]), head.lower(), body


# --- commands ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (("pause", "app"), OperatorCommand(Verb.PAUSE, "app")),
        (("resume", "app"), OperatorCommand(Verb.RESUME, "app")),
        (("pause", "--all"), OperatorCommand(Verb.PAUSE)),
        (("resume", "--all"), OperatorCommand(Verb.RESUME)),
        (("step-down", "app"), OperatorCommand(Verb.STEP_DOWN, "app")),
        (
            ("step-down", "app", "--for", "5s", "--to", "vm2"),
            OperatorCommand(Verb.STEP_DOWN, "app", rest_s=5.0, to="vm2"),
        ),
    ],
    ids=lambda value: " ".join(value) if type(value) is tuple else "",
)
async def test_a_command_reaches_the_daemon_once_and_prints_nothing(
    arguments: tuple[str, ...], asked: OperatorCommand, folder: Path
) -> None:
    path = folder / "c.sock"
    async with served(path) as daemon:
        assert await operate(*arguments, "--socket", str(path)) == (DONE, "", "")
        assert daemon.asked == [asked]


async def test_what_came_of_a_command_is_printed_unless_it_is_to_be_quiet(folder: Path) -> None:
    path = folder / "c.sock"

    class Talks(Standin):
        async def ask(self, asked: OperatorCommand) -> Reply:
            return Reply(Result.DONE, "", ("app: paused \x1b[2J", "web: paused"))

    control = control_of(path, Talks())
    await control.open()
    told = await operate("pause", "--all", "--socket", str(path))
    assert told == (DONE, "app: paused \\x1b[2J\nweb: paused\n", "")
    assert await operate("pause", "--all", "--quiet", "--socket", str(path)) == (DONE, "", "")
    await control.close()


@pytest.mark.parametrize("verb", ["pause", "resume", "recover", "step-down"])
async def test_the_reason_of_a_command_reaches_the_daemon(verb: str, folder: Path) -> None:
    path, reason = folder / "c.sock", "ä" * (NOTE_CHARS_MAX - 3) + ' "😀'
    async with served(path) as daemon:
        await operate(verb, "app", "--reason", f" {reason}", "--socket", str(path))
        (asked,) = daemon.asked
        assert (asked.verb, asked.name, asked.note) == (verb, "app", reason)
        assert daemon.received[0][0] == asked and daemon.received[0][1].uid == os.geteuid()


@pytest.mark.parametrize(
    "reason",
    ["x" * (NOTE_CHARS_MAX + 1), "two\nlines", "\x1b[2J", "\u202e", b"\xff".decode(errors="surrogateescape")],
)
async def test_a_reason_that_is_no_short_line_is_refused(reason: str, folder: Path) -> None:
    path = folder / "c.sock"
    async with served(path) as daemon:
        code, out, error = await operate("pause", "app", "--reason", reason, "--socket", str(path))
        assert (code, out) == (USAGE, "") and "one line of at most 200 printable characters" in error
        assert daemon.asked == []
        with pytest.raises(InvalidCommand, match="note must be a text"):
            command_of("/v1/pause/app", json.dumps({"note": reason}).encode())


@pytest.mark.parametrize("note", [7, None, ["x"], {"a": 1}])
def test_a_note_that_is_no_text_is_refused(note: object) -> None:
    with pytest.raises(InvalidCommand, match="note must be a text"):
        command_of("/v1/step-down/app", json.dumps({"note": note}).encode())


def test_a_step_down_with_a_note_alone_rests_as_long_as_by_default() -> None:
    asked = command_of("/v1/step-down/app", b'{"note": " why "}')
    assert asked == OperatorCommand(Verb.STEP_DOWN, "app", REST_S, "why")


def test_a_user_has_the_name_of_the_local_file(tmp_path: Path) -> None:
    users = tmp_path / "passwd"
    users.write_bytes(b"broken\nroot:x:0:0::/root:/bin/sh\nj\xff:x:1000:1000::/:/bin/sh\n")
    named = [user_name(uid, users) for uid in (0, 1000, 7)]
    assert named == ["root", "j\ufffd", ""] and user_name(0, tmp_path / "none") == ""


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("recover", "app"), NEGATIVE, "cannot recover app: it is not stuck (role: waiting)"),
        (("pause", "other"), USAGE, "cannot pause other: no such election, it has app"),
    ],
)
async def test_a_command_that_cannot_be_done_is_reported_in_one_line(
    arguments: tuple[str, ...], code: int, error: str, folder: Path
) -> None:
    """Exit code 1 means not now, and an unknown name is wrong usage, as it is for ``leader``."""
    path = folder / "c.sock"
    async with served(path):
        told = await operate(*arguments, "--socket", str(path))
        assert told == (code, "", f"consul-supervisor: {error}\n")


async def test_each_command_is_noted_with_its_user(folder: Path) -> None:
    path = folder / "c.sock"
    async with served(path) as daemon:
        await spoken(connected(path), "/v1/recover/app")
    (noted,) = daemon.noted
    assert noted[:2] == (OperatorCommand(Verb.RECOVER, "app"), Result.IMPOSSIBLE)
    assert (noted[2].pid, noted[2].uid) == (os.getpid(), os.geteuid())


async def test_a_command_whose_client_has_disconnected_is_noted(folder: Path) -> None:
    """The command may have been done, so an operator who steps a node down and disconnects is known."""

    class Slow(Standin):
        async def ask(self, asked: OperatorCommand) -> Reply:
            await super().ask(asked)
            await asyncio.Event().wait()
            raise AssertionError("nothing ends this wait")

    daemon = Slow()
    control = control_of(folder / "sock", daemon)
    await control.open()
    _, writer = await asyncio.open_unix_connection(sock=connected(folder / "sock"))
    writer.write(b"POST /v1/step-down/app HTTP/1.1\r\nHost: x\r\n\r\n")
    async with asyncio.timeout(PATIENCE_S):
        while not daemon.asked:
            await asyncio.sleep(0.01)
        writer.close()
        while not daemon.noted:
            await asyncio.sleep(0.01)
    await control.close()
    ((asked, outcome, peer),) = daemon.noted
    assert (asked.verb, outcome, peer.uid) == (Verb.STEP_DOWN, Result.IMPOSSIBLE, os.geteuid())


@pytest.mark.parametrize("there", ["nothing", "left behind", "a file"])
def test_without_a_daemon_a_command_exits_with_69_and_names_the_socket(there: str, folder: Path) -> None:
    path = folder / "c.sock"
    if there == "left behind":
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
    elif there == "a file":
        path.touch()
    done = command("pause", "app", "--socket", str(path))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (UNREACHABLE, "", 1)
    assert done.stderr.startswith(f"consul-supervisor: cannot ask the daemon: cannot reach {path}: ")


@pytest.mark.parametrize(
    ("status", "body"), [(200, b"hello"), (200, b'{"done": 1}'), (404, b"{}"), (500, b""), (409, b"[" * 9999)]
)
async def test_an_answer_that_is_not_a_daemons_exits_with_69(status: int, body: bytes, folder: Path) -> None:
    """The command may have been done or not, so the exit code is neither 0 nor 1."""
    path = folder / "c.sock"

    async def handle(request: HttpRequest) -> HttpAnswer:
        return HttpAnswer(status, body)

    other = HttpServer(handle)
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(str(path))
    await other.listen_unix(bound)
    code, out, error = await operate("pause", "app", "--socket", str(path))
    await other.close()
    assert (code, out, error.count("\n")) == (UNREACHABLE, "", 1)
    assert f"cannot ask the daemon: {status} " in error


def test_a_command_waits_for_a_daemon_that_hangs_within_its_limit(folder: Path) -> None:
    path = folder / "c.sock"
    with socket.socket(socket.AF_UNIX) as frozen:
        frozen.bind(str(path))
        frozen.listen()
        with pytest.raises(
            DaemonUnreachable, match=f"cannot ask the daemon: no answer from {path} within 0.1 s"
        ):
            ask(str(path), OperatorCommand(Verb.PAUSE, "app"), within_s=0.1)


# --- HTTP ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/v1/pause/app", 405),
        ("POST", "/v1/recover", 404),
        ("POST", "/v1/pause/", 404),
        ("POST", "/v1/pause/app/", 404),
        ("POST", "/v1/pause/APP", 404),
        ("POST", "/v1/pause/app%0a", 404),
        ("POST", "/v1/pause/" + "a" * 64, 404),
        ("POST", "/v1/pause/app?x=1", 404),
        ("POST", "/v1/fly/app", 404),
        ("POST", "/", 404),
    ],
)
async def test_a_request_that_is_no_command_is_refused(
    method: str, target: str, status: int, folder: Path
) -> None:
    path = folder / "c.sock"
    async with served(path) as daemon:
        told, head, body = await spoken(connected(path), target, method)
        assert told == status and json.loads(body)["error"].startswith("cannot ")
        assert "content-type: application/json" in head
        assert (status == 405) == ("\nallow: post" in head)
        assert daemon.asked == [] and daemon.noted == []


# --- users and groups ----------------------------------------------------------------------------


@contextmanager
def someone_else(*groups: int) -> Iterator[None]:
    """Become user nobody in these groups, which the kernel notes at a connect."""
    before = os.getgroups()
    os.setgroups(groups)
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(before)


def facts(path: Path) -> tuple[int, int]:
    found = path.stat()
    return stat.S_IMODE(found.st_mode), found.st_gid


async def test_only_its_owner_can_use_the_control_socket(folder: Path) -> None:
    path = folder / "c.sock"
    async with served(path):
        assert facts(path)[0] == 0o600


def test_an_unknown_control_group_is_refused(folder: Path) -> None:
    with pytest.raises(ControlError, match="no-such-group use the control socket: there is no such group"):
        asyncio.run(control_of(folder / "c.sock", group="no-such-group").open())
    assert not (folder / "c.sock").exists()


@as_root
async def test_members_of_the_control_group_can_use_the_socket_and_strangers_cannot(folder: Path) -> None:
    path, gid = folder / "c.sock", grp.getgrnam(GROUP).gr_gid
    async with served(path, group=GROUP) as daemon:
        assert facts(path) == (0o660, gid)
        with someone_else(gid):
            member = connected(path)
        assert (await spoken(member, "/v1/pause/app"))[0] == 200
        with someone_else(), pytest.raises(PermissionError):
            connected(path)
    (noted,) = daemon.noted
    assert noted[2].uid == NOBODY


@as_root
@pytest.mark.parametrize("group", [None, GROUP])
async def test_a_stranger_is_refused_even_if_the_mode_of_the_socket_lets_everybody_in(
    group: str | None, folder: Path
) -> None:
    path = folder / "c.sock"
    async with served(path, group=group) as daemon:
        path.chmod(0o666)
        with someone_else(grp.getgrnam("mail").gr_gid):
            stranger = connected(path)
        status, _, body = await spoken(stranger, "/v1/pause/app")
        assert status == 403 and daemon.asked == []
        error = json.loads(body)["error"]
        assert error.startswith(f"cannot take commands from user id {NOBODY}: only root, ")
        assert (f"group {GROUP}" in error) == (group is not None)


# --- the file of the socket ----------------------------------------------------------------------


async def test_the_folder_of_the_socket_is_made_and_the_socket_is_removed_at_the_end(folder: Path) -> None:
    path = folder / "a" / "b" / "c.sock"
    async with served(path):
        assert path.is_socket()
    assert path.parent.is_dir() and not path.exists()


async def test_a_socket_left_behind_by_a_crash_is_replaced(folder: Path) -> None:
    path = folder / "c.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    async with served(path):
        assert (await spoken(connected(path), "/v1/pause/app"))[0] == 200


def opening(path: Path) -> ControlError:
    """Return the error of a socket that cannot be made there."""
    with pytest.raises(ControlError) as refused:
        asyncio.run(control_of(path).open())
    assert str(refused.value).startswith(f"cannot make the control socket {path}: ")
    assert "\n" not in str(refused.value)
    return refused.value


@pytest.mark.parametrize("queue", [8, 0], ids=["it answers", "its queue is full"])
def test_a_socket_of_a_running_daemon_is_left_alone(queue: int, folder: Path) -> None:
    path = folder / "c.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen(queue)
        client = connected(path)
        error = opening(path)
        assert not error.no_place and "another consul-supervisor answers on it" in str(error)
        other.accept()[0].close()
        client.close()
        assert path.is_socket()


@pytest.mark.parametrize("there", ["file", "link", "folder"])
def test_a_file_link_or_folder_in_the_place_of_the_socket_is_never_removed(there: str, folder: Path) -> None:
    path = folder / "c.sock"
    if there == "file":
        path.write_text("precious")
    elif there == "link":
        path.symlink_to(folder / "elsewhere")
    else:
        path.mkdir()
    assert not opening(path).no_place
    assert path.is_symlink() or path.is_dir() or path.read_text() == "precious"


def test_a_folder_of_the_socket_that_cannot_be_made_is_reported(folder: Path) -> None:
    (folder / "file").touch()
    error = opening(folder / "file" / "c.sock")
    assert error.no_place and "set control_socket to a path where this user may" in str(error)


async def test_the_socket_of_a_successor_is_not_removed(folder: Path) -> None:
    path = folder / "c.sock"
    first, second = control_of(path), control_of(path)
    await first.open()
    path.unlink()
    await second.open()
    await first.close()
    assert (await spoken(connected(path), "/v1/pause/app"))[0] == 200
    await second.close()
    assert not path.exists()


async def test_a_socket_elsewhere_is_linked_from_where_commands_look(folder: Path) -> None:
    """The link is that of the daemon that was started last, and each removes only its own."""
    link, a, b = folder / "run" / "control.sock", folder / "a.sock", folder / "b.sock"
    first, second = linked(a, link), linked(b, link)
    await first.open()
    assert (await spoken(connected(link), "/v1/pause/app"))[0] == 200
    await second.open()
    await first.close()
    assert link.readlink() == b and not a.exists()
    await second.close()
    assert not link.is_symlink()


async def test_a_daemon_at_the_usual_socket_takes_a_link_over_and_keeps_it(folder: Path) -> None:
    usual = folder / "control.sock"
    usual.symlink_to(folder / "killed.sock")
    first, second = linked(usual, usual), linked(folder / "b.sock", usual)
    await first.open()
    await second.open()
    assert usual.is_socket() and not usual.is_symlink()
    await second.close()
    assert (await spoken(connected(usual), "/v1/pause/app"))[0] == 200
    await first.close()
    assert not usual.exists()


async def test_a_daemon_that_cannot_start_beside_another_leaves_its_link(folder: Path) -> None:
    link, path = folder / "control.sock", folder / "a.sock"
    first, second = linked(path, link), linked(path, link)
    await first.open()
    with pytest.raises(ControlError, match="another consul-supervisor answers"):
        await second.open()
    await second.close()
    assert link.readlink() == path
    await first.close()


def linked(path: Path, link: Path) -> Control:
    return of_settings(ControlSettings(str(path), link=str(link)), Standin(), [])


def tried(settings: ControlSettings) -> list[str]:
    """Return the warnings of a daemon with these settings. Raises ControlError."""
    warnings: list[str] = []

    async def run() -> None:
        control = of_settings(settings, Standin(), warnings)
        await control.open()
        assert Path(settings.path).exists() != bool(warnings)
        await control.close()

    asyncio.run(run())
    return warnings


@pytest.mark.parametrize("name", ["file/control.sock", "x" * 100 + "/control.sock"])
def test_a_default_socket_that_this_user_cannot_make_is_a_warning(name: str, folder: Path) -> None:
    """A normal user may try the daemon out, and a configured place must be usable."""
    (folder / "file").touch()
    path = str(folder / name)
    (warning,) = tried(ControlSettings(path))
    assert path in warning and warning.endswith("commands will not reach this daemon")
    with pytest.raises(ControlError):
        tried(ControlSettings(path, configured=True))


def test_a_default_socket_that_can_be_made_is_used_without_a_warning(folder: Path) -> None:
    assert tried(ControlSettings(str(folder / "control.sock"))) == []


def test_a_default_socket_of_another_running_daemon_is_refused(folder: Path) -> None:
    """Commands would reach the other daemon."""
    path = folder / "control.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(ControlError, match="another consul-supervisor answers"):
            tried(ControlSettings(str(path)))


@as_root
def test_a_control_group_that_this_user_cannot_set_is_refused(folder: Path) -> None:
    """The default place is no excuse, because the operator has set the group."""
    folder.chmod(0o777)
    with someone_else(), pytest.raises(ControlError, match="only root and members of a group may give it"):
        tried(ControlSettings(str(folder / "control.sock"), GROUP))
    assert list(folder.iterdir()) == []
