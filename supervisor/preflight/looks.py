"""One look: whether a command can start here, or whether a file can be read.

The module imports little. A look may hang in any call of the kernel, for which ``looker`` has a time limit.
"""

from __future__ import annotations

import grp
import marshal
import os
import pwd
import stat

TYPE_CHECKING = False  # importing typing takes longer than all looks
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Look = dict[str, Any]
    Fault = tuple[str, str, str]  # the setting, the reason, and the remedy

FIRST_LINE_BYTES = 256  # the kernel reads no more of a script's first line
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class LookRefused(Exception):
    """A command or file cannot be used here. ``fault`` is the setting, the reason, and the remedy."""

    def __init__(self, setting: str, why: str, remedy: str) -> None:
        self.fault = (setting, why, remedy)


def faults_of(look: Look, strict: bool) -> list[Fault]:
    """Return every reason why the command or file of this look cannot be used here.

    strict: whether the supervisor is run by this user. If not, a refusal that concerns this user alone is no
        reason.
    """
    lenient = not strict and os.geteuid() != 0
    if "file" in look or "folder" in look:
        return _gathered(lambda: _readable(look, lenient=lenient))
    faults: list[Fault] = []
    identity: Credentials | None = None
    try:
        identity = _identity(look["user"], look["group"])
        if look["setpriv"] or identity is not None:
            _setpriv(look["path"])
    except LookRefused as refused:
        faults.append(refused.fault)
    if identity is None and look["cwd"] is None:
        return faults + _gathered(lambda: _executable(look, lenient=lenient))
    return faults + _as(identity, lambda: _gathered(lambda: _startable(look, lenient=lenient)))


def _gathered(look: Callable[[], None]) -> list[Fault]:
    try:
        look()
    except LookRefused as refused:
        return [refused.fault]
    return []


def _readable(look: Look, *, lenient: bool) -> None:
    setting, folder = look["setting"], "folder" in look
    name = look["folder"] if folder else look["file"]
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        if isinstance(error, PermissionError) and lenient:
            return
        missing = "make it" if folder else "write it"
        remedy = f"let {_us()} read it" if isinstance(error, PermissionError) else missing
        raise LookRefused(
            setting, f"cannot read {name}: {_reason(error)}", f"{remedy}, or correct {setting}"
        ) from None
    mode = os.fstat(fd).st_mode
    os.close(fd)
    if folder and not stat.S_ISDIR(mode):
        raise LookRefused(setting, f"cannot read {name}: it is not a folder", f"correct {setting}")
    if not folder and not stat.S_ISREG(mode):
        raise LookRefused(setting, f"cannot read {name}: it is not a regular file", f"correct {setting}")


# --- as which user -------------------------------------------------------------------------------


class Credentials:
    """The user and groups of a command, as in credentials(7). ``uid`` None: the user stays."""

    def __init__(self, uid: int | None, gid: int, groups: list[int]) -> None:
        self.uid, self.gid, self.groups = uid, gid, groups

    def take(self) -> None:
        """Give this process these rights for the rest of its life."""
        os.setgroups(self.groups)
        os.setgid(self.gid)
        if self.uid is not None:
            os.setuid(self.uid)


def _identity(user: str | None, group: str | None) -> Credentials | None:
    """Return the rights of a command. None: those of this process. Raises LookRefused."""
    if user is None and group is None:
        return None
    entry = None if user is None else _user(user)
    gid = _group(group) if group is not None else entry.pw_gid if entry is not None else os.getegid()
    uid = None if entry is None else entry.pw_uid
    if os.geteuid() != 0:
        if (os.geteuid() if uid is None else uid, gid) == (os.geteuid(), os.getegid()):
            return None
        setting, remedy = "group" if user is None else "user", "run the supervisor as root, or remove it"
        raise LookRefused(setting, f"only root may run a hook as another user or group, not {_us()}", remedy)
    return Credentials(uid, gid, [] if entry is None else os.getgrouplist(entry.pw_name, gid))


def _user(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    except KeyError:
        raise LookRefused("user", f"unknown user {name!r}", "add the user, or correct user") from None


def _group(name: str) -> int:
    try:
        return (grp.getgrgid(int(name)) if name.isdecimal() else grp.getgrnam(name)).gr_gid
    except KeyError:
        raise LookRefused("group", f"unknown group {name!r}", "add the group, or correct group") from None


def _setpriv(path: str) -> None:
    for folder in (*path.split(":"), *SYSTEM_PATH.split(":")):
        if os.access(os.path.join(folder, "setpriv"), os.X_OK):
            return
    why = "setpriv is not installed, and run, user and group need it"
    raise LookRefused("", why, "install util-linux")


def _as(identity: Credentials | None, look: Callable[[], list[Fault]]) -> list[Fault]:
    """Return the faults that ``look`` finds in a process with these rights."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:

        def work() -> None:
            if identity is not None:
                identity.take()
            with open(theirs, "wb") as answer:
                marshal.dump(look(), answer)

        in_child(work)
    os.close(theirs)
    content = b""
    while more := os.read(ours, 65536):
        content += more
    os.close(ours)
    os.waitpid(pid, 0)
    if not content:
        why = f"{_us()} cannot take the rights of that user here"
        return [("user", why, "see whether the supervisor's unit removes CAP_SETUID or CAP_SETGID")]
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
            raise LookRefused(
                "cwd", f"{_us()} may not enter {cwd}", f"chmod +x {cwd}, or correct cwd"
            ) from None
        except (OSError, ValueError) as error:
            raise LookRefused(
                "cwd", f"cannot enter {cwd}: {_reason(error)}", "make it, or correct cwd"
            ) from None
    _executable(look, lenient=lenient)


def _executable(look: Look, *, lenient: bool) -> None:
    found = _found(look["program"], look["path"], lenient=lenient)
    if found is None:
        return
    try:
        with open(found, "rb") as file:
            first = file.read(FIRST_LINE_BYTES)
    except OSError:
        return  # a program can be executed without being readable
    if first.startswith(b"#!"):
        _interpretable(found, os.fsdecode(first[2:].partition(b"\n")[0]), look["path"])


def _found(name: str, path: str, *, lenient: bool) -> str | None:
    """Return the file that is executed. None: this user cannot find out. Raises LookRefused."""
    folders = [""] if "/" in name else path.split(":")
    refused: LookRefused | None = None
    for folder in folders:
        file = os.path.join(folder, name)
        try:
            mode = os.stat(file).st_mode
        except PermissionError:
            if "/" in name and lenient:
                return None
            fault = ("", f"{_us()} may not look for {file}", "chmod +x its folders")
            refused = refused or LookRefused(*fault)
            continue
        except (OSError, ValueError):
            continue
        if not stat.S_ISREG(mode):
            refused = refused or LookRefused("", f"{file} is not a program", "correct the path")
        elif os.access(file, os.X_OK):
            return file
        elif lenient and mode & 0o111:
            return None
        else:
            refused = refused or LookRefused("", f"{_us()} cannot execute {file}", f"chmod +x {file}")
    if refused is not None and ("/" in name or "may not look" not in refused.fault[1]):
        raise refused
    if "/" in name:
        raise LookRefused("", f"no such program: {name}", "install it, or correct the path")
    raise LookRefused(
        "", f"no such program: {name} is in no folder of PATH, {path}", "install it, or write its path"
    )


def _interpretable(file: str, line: str, path: str) -> None:
    """Check the first line of a script. Raises LookRefused when the program that it names is missing."""
    words = line.split()
    if not words:
        return
    remedy = f"install it, or correct the first line of {file}"
    if not os.access(words[0], os.X_OK):
        raise LookRefused("", f"{file} is run by {words[0]}, which cannot be executed here", remedy)
    named = words[1:2] if os.path.basename(words[0]) == "env" else []
    for name in named:
        if name.isidentifier() and not any(os.access(f"{each}/{name}", os.X_OK) for each in path.split(":")):
            raise LookRefused("", f"{file} is run by {name}, which is in no folder of PATH, {path}", remedy)


def _us() -> str:
    try:
        return f"user {pwd.getpwuid(os.geteuid()).pw_name}"
    except KeyError:
        return f"user id {os.geteuid()}"


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def in_child(work: Callable[[], object]) -> None:
    """Run ``work`` in a child after a fork, and end the child, so that it never runs the parent's code."""
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)
