"""Looks whether commands can start on this machine and files can be read: a program of its own.

It imports little, because a node that starts waits for it. It reads one question from standard input (by
``marshal``, whose other end is the same interpreter) and writes one line of JSON for each look. A look
may hang (a file system that does not answer, a directory of users that is out of reach), so workers make
the looks in their order: when a worker stands still for ``STALL_S``, another worker goes on with the
rest. What has no answer in time is told as a fault.
It must never change anything, and never show what a file holds.
"""

from __future__ import annotations

import grp
import marshal
import os
import pwd
import select
import stat
import sys
import time

TYPE_CHECKING = False  # to import typing takes longer than all looks
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Look = dict[str, Any]
    Fault = tuple[str, str, str]  # the setting, why, and what mends it

KILL = 9
STALL_S = 0.25  # a look takes microseconds; so there are at most twenty workers in five seconds
FIRST_LINE_BYTES = 256  # the kernel reads no more of a script's first line
ANSWERS = 1  # the descriptor: standard output
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
HANGS = "see whether its file system or the directory of users answers"


def main() -> None:
    """Answer the question on standard input."""
    asked = marshal.loads(sys.stdin.buffer.read())
    if "precautions" in asked:
        _precautions(asked["precautions"])
    else:
        Looks(asked["looks"], asked["within_s"], strict=asked["strict"]).answer()


def _precautions(question: dict[str, Any]) -> None:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from supervisor.precautions import look

    for problem in look(question):
        _write(ANSWERS, [problem.file, problem.path, problem.message])


def _write(fd: int, value: object) -> None:
    import json  # only a fault pays for it

    _send(fd, json.dumps(value).encode() + b"\n")


def _answer(fd: int, index: int, faults: list[Fault]) -> None:
    if faults:
        _write(fd, [index, faults])
    else:
        _send(fd, b"[%d, []]\n" % index)


def _send(fd: int, text: bytes) -> None:
    while text:
        text = text[os.write(fd, text) :]


# --- workers -------------------------------------------------------------------------------------


class Worker:
    """A process that makes looks one after the other. ``left``: those whose answer it still owes."""

    def __init__(self, looks: Sequence[Look], order: list[int], *, strict: bool) -> None:
        self.left = list(order)
        self.moved_at = time.monotonic()
        self.fd, theirs = os.pipe()
        self._buffer = b""
        self.pid = os.fork()
        if self.pid == 0:
            _hush()
            in_child(lambda: self._work(looks, theirs, strict))
        os.close(theirs)

    def _work(self, looks: Sequence[Look], fd: int, strict: bool) -> None:
        for index in self.left:
            _answer(fd, index, faults_of(looks[index], strict))

    def hear(self) -> list[tuple[int, bytes]] | None:
        """The answers that have come, by their looks; None when the worker has ended."""
        content = os.read(self.fd, 65536)
        if not content:
            return None
        *lines, self._buffer = (self._buffer + content).split(b"\n")
        answered, self.left = self.left[: len(lines)], self.left[len(lines) :]
        self.moved_at = time.monotonic()
        return list(zip(answered, lines, strict=True))

    def end(self) -> None:
        """Nobody waits for it: it may be unable to end."""
        os.close(self.fd)
        os.kill(self.pid, KILL)


class Looks:
    """All looks of one question, each answered exactly once on standard output."""

    def __init__(self, looks: Sequence[Look], within_s: float, *, strict: bool) -> None:
        self._looks = looks
        self._within_s = within_s
        self._strict = strict
        self._open = dict.fromkeys(range(len(looks)))
        self._poll = select.poll()
        self._workers: dict[int, Worker] = {}
        self._front: Worker | None = None  # the worker that goes on; the others stand still

    def answer(self) -> None:
        """Return when every look is answered, or its time is over."""
        ends_at = time.monotonic() + self._within_s
        self._go_on(list(self._open))
        while self._open and (left_s := ends_at - time.monotonic()) > 0:
            for fd, _ in self._poll.poll(min(left_s, STALL_S) * 1000):
                self._hear(self._workers[fd])
            self._look_after_front()
        for index in self._open:
            why = f"{_what(self._looks[index])} did not answer within {self._within_s:g} s"
            _write(ANSWERS, [index, [("", why, HANGS)]])
        if self._workers:
            os.killpg(0, KILL)  # what they have begun as another user, too

    def _go_on(self, order: list[int]) -> None:
        self._front = None
        if order:
            self._front = worker = Worker(self._looks, order, strict=self._strict)
            self._workers[worker.fd] = worker
            self._poll.register(worker.fd, select.POLLIN)

    def _hear(self, worker: Worker) -> None:
        answers = worker.hear()
        for index, line in answers or ():
            if index in self._open:
                del self._open[index]
                _send(ANSWERS, line + b"\n")
        if answers is None or not worker.left or worker is not self._front:
            self._end(worker, died=answers is None and bool(worker.left))

    def _end(self, worker: Worker, *, died: bool) -> None:
        self._poll.unregister(worker.fd)
        del self._workers[worker.fd]
        worker.end()
        os.waitpid(worker.pid, os.WNOHANG)
        if died and worker.left[0] in self._open:
            del self._open[worker.left[0]]
            _write(
                ANSWERS,
                [worker.left[0], [("", f"cannot look at {_what(self._looks[worker.left[0]])}", HANGS)]],
            )
        if worker is self._front:
            self._go_on([index for index in worker.left if index in self._open])

    def _look_after_front(self) -> None:
        """Where it stands still another one goes on, last with what lies in the same folders."""
        front = self._front
        if front is None or time.monotonic() - front.moved_at < STALL_S:
            return
        bad = {folder for each in self._workers.values() for folder in _folders(self._looks[each.left[0]])}
        rest = [index for index in front.left[1:] if index in self._open]
        self._go_on(sorted(rest, key=lambda index: not bad.isdisjoint(_folders(self._looks[index]))))


def _hush() -> None:
    """A worker that hangs keeps nobody waiting who reads what this program writes."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, ANSWERS)
    os.dup2(null, 2)


def in_child(work: Callable[[], object]) -> None:
    """Never returns: what the parent goes on with is not the child's."""
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def _folders(look: Look) -> set[str]:
    names = (look.get("file"), look.get("program"))
    return {os.path.dirname(name) for name in names if name and "/" in name} | {look.get("cwd") or ""} - {""}


def _what(look: Look) -> str:
    return str(look.get("file") or look["program"])


# --- one look ------------------------------------------------------------------------------------


class Refused(Exception):
    """``fault``: why something cannot be."""

    def __init__(self, setting: str, why: str, remedy: str) -> None:
        self.fault = (setting, why, remedy)


def faults_of(look: Look, strict: bool) -> list[Fault]:
    """Every reason for which this cannot be used here. ``strict``: also what the kernel refuses to us
    alone, where the supervisor may be run by another user."""
    lenient = not strict and os.geteuid() != 0
    if "file" in look:
        return _gathered(lambda: _readable(look["setting"], look["file"], lenient=lenient))
    faults: list[Fault] = []
    identity: Identity | None = None
    try:
        identity = _identity(look["user"], look["group"])
        if look["setpriv"] or identity is not None:
            _setpriv(look["path"])
    except Refused as refused:
        faults.append(refused.fault)
    if identity is None and look["cwd"] is None:
        return faults + _gathered(lambda: _executable(look, lenient=lenient))
    return faults + _as(identity, lambda: _gathered(lambda: _startable(look, lenient=lenient)))


def _gathered(look: Callable[[], None]) -> list[Fault]:
    try:
        look()
    except Refused as refused:
        return [refused.fault]
    return []


def _readable(setting: str, name: str, *, lenient: bool) -> None:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        if isinstance(error, PermissionError) and lenient:
            return
        remedy = f"let {_us()} read it" if isinstance(error, PermissionError) else "write it"
        raise Refused(
            setting, f"cannot read {name}: {_said(error)}", f"{remedy}, or correct {setting}"
        ) from None
    regular = stat.S_ISREG(os.fstat(fd).st_mode)
    os.close(fd)
    if not regular:
        raise Refused(setting, f"cannot read {name}: it is no regular file", f"correct {setting}")


# --- as which user -------------------------------------------------------------------------------


class Identity:
    """What a command becomes before it starts; ``uid`` None: the user stays."""

    def __init__(self, uid: int | None, gid: int, groups: list[int]) -> None:
        self.uid, self.gid, self.groups = uid, gid, groups

    def take(self) -> None:
        """This process has these rights from now on."""
        os.setgroups(self.groups)
        os.setgid(self.gid)
        if self.uid is not None:
            os.setuid(self.uid)


def _identity(user: str | None, group: str | None) -> Identity | None:
    """None: as we are. Raises Refused."""
    if user is None and group is None:
        return None
    entry = None if user is None else _user(user)
    gid = _group(group) if group is not None else entry.pw_gid if entry is not None else os.getegid()
    uid = None if entry is None else entry.pw_uid
    if os.geteuid() != 0:
        if (os.geteuid() if uid is None else uid, gid) == (os.geteuid(), os.getegid()):
            return None
        setting, remedy = "group" if user is None else "user", "run the supervisor as root, or remove it"
        raise Refused(setting, f"only root may run a hook as another user or group, not {_us()}", remedy)
    return Identity(uid, gid, [] if entry is None else os.getgrouplist(entry.pw_name, gid))


def _user(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    except KeyError:
        raise Refused("user", f"unknown user {name!r}", "add the user, or correct user") from None


def _group(name: str) -> int:
    try:
        return (grp.getgrgid(int(name)) if name.isdecimal() else grp.getgrnam(name)).gr_gid
    except KeyError:
        raise Refused("group", f"unknown group {name!r}", "add the group, or correct group") from None


def _setpriv(path: str) -> None:
    for folder in (*path.split(":"), *SYSTEM_PATH.split(":")):
        if os.access(os.path.join(folder, "setpriv"), os.X_OK):
            return
    why = "setpriv is not installed, and run, user and group need it"
    raise Refused("", why, "install util-linux")


def _as(identity: Identity | None, look: Callable[[], list[Fault]]) -> list[Fault]:
    """What somebody with these rights finds, in a process of its own."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:

        def work() -> None:
            if identity is not None:
                identity.take()
            _send(theirs, marshal.dumps(look()))

        in_child(work)
    os.close(theirs)
    content = b""
    while more := os.read(ours, 65536):
        content += more
    os.close(ours)
    os.waitpid(pid, 0)
    if not content:
        return [("user", "its rights cannot be had here", "see what the supervisor's unit takes from it")]
    return [(setting, why, remedy) for setting, why, remedy in marshal.loads(content)]


# --- a program -----------------------------------------------------------------------------------


def _startable(look: Look, *, lenient: bool) -> None:
    cwd = look["cwd"]
    if cwd is not None:
        try:
            os.chdir(cwd)
        except PermissionError:
            if lenient:
                return
            raise Refused("cwd", f"{_us()} may not enter {cwd}", f"chmod +x {cwd}, or correct cwd") from None
        except (OSError, ValueError) as error:
            raise Refused("cwd", f"cannot enter {cwd}: {_said(error)}", "make it, or correct cwd") from None
    _executable(look, lenient=lenient)


def _executable(look: Look, *, lenient: bool) -> None:
    found = _found(look["program"], look["path"], lenient=lenient)
    if found is None:
        return
    try:
        with open(found, "rb") as file:
            first = file.read(FIRST_LINE_BYTES)
    except OSError:
        return  # a program need not be readable
    if first.startswith(b"#!"):
        _interpretable(found, os.fsdecode(first[2:].partition(b"\n")[0]), look["path"])


def _found(name: str, path: str, *, lenient: bool) -> str | None:
    """The file that is executed; None: nobody tells whether it can be. Raises Refused."""
    folders = [""] if "/" in name else path.split(":")
    refused: Refused | None = None
    for folder in folders:
        file = os.path.join(folder, name)
        try:
            mode = os.stat(file).st_mode
        except PermissionError:
            if "/" in name and lenient:
                return None
            fault = ("", f"{_us()} may not look for {file}", "chmod +x its folders")
            refused = refused or Refused(*fault)
            continue
        except (OSError, ValueError):
            continue
        if not stat.S_ISREG(mode):
            refused = refused or Refused("", f"{file} is no program", "correct the path")
        elif os.access(file, os.X_OK):
            return file
        elif lenient and mode & 0o111:
            return None
        else:
            refused = refused or Refused("", f"{_us()} cannot execute {file}", f"chmod +x {file}")
    if refused is not None and ("/" in name or "may not look" not in refused.fault[1]):
        raise refused
    if "/" in name:
        raise Refused("", f"no such program: {name}", "install it, or correct the path")
    raise Refused(
        "", f"no such program: {name} is in no folder of PATH, {path}", "install it, or write its path"
    )


def _interpretable(file: str, line: str, path: str) -> None:
    """Raises Refused when what the first line of a script names is not there."""
    words = line.split()
    if not words:
        return
    remedy = f"install it, or correct the first line of {file}"
    if not os.access(words[0], os.X_OK):
        raise Refused("", f"{file} is run by {words[0]}, which cannot be executed here", remedy)
    named = words[1:2] if os.path.basename(words[0]) == "env" else []
    for name in named:
        if name.isidentifier() and not any(os.access(f"{each}/{name}", os.X_OK) for each in path.split(":")):
            raise Refused("", f"{file} is run by {name}, which is in no folder of PATH, {path}", remedy)


def _us() -> str:
    try:
        return f"user {pwd.getpwuid(os.geteuid()).pw_name}"
    except KeyError:
        return f"user id {os.geteuid()}"


def _said(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


if __name__ == "__main__":
    main()
