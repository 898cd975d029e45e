"""One probe: whether a command can start here, or whether a file can be read.

A probe may hang in any call of the kernel, so a child makes it (``probe_run``). It must never change
anything, and must never show the content of a file.
"""

import grp
import os
import pwd
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from supervisor.hooks.privileges import PrivilegesRefused, Rights, rights_of, setpriv, unknown

FIRST_LINE_BYTES = 256  # the kernel reads no more of a script's first line
Fault = tuple[str, str, str]  # the setting, the reason, and the remedy


class ProgramProbe(NamedTuple):
    """The question whether a command can start."""

    program: str  # the first word of its argv
    path: str  # the PATH in which the program is found
    cwd: str | None = None
    user: str | None = None
    group: str | None = None
    dies_with_us: bool = False  # whether the kernel is to kill the command together with the supervisor


class FileProbe(NamedTuple):
    """The question whether a file, or a folder, can be read. ``setting``: the key that names it."""

    setting: str
    name: str
    is_folder: bool = False


Probe = ProgramProbe | FileProbe


class ProbeRefused(Exception):
    """A command or file cannot be used here. ``fault`` is the setting, the reason, and the remedy."""

    def __init__(self, setting: str, why: str, remedy: str) -> None:
        self.fault = (setting, why, remedy)


def faults_of(probe: Probe, strict: bool) -> list[Fault]:
    """Return every reason why the command or file of this probe cannot be used here.

    strict: whether the supervisor is run by this user. If not, a refusal that concerns this user alone is no
        reason.
    """
    lenient = not strict and os.geteuid() != 0
    if isinstance(probe, FileProbe):
        return _gathered(lambda: _readable(probe, lenient=lenient))
    faults: list[Fault] = []
    rights = Rights()
    try:
        rights = _rights_of(probe)
        if rights.differ or probe.dies_with_us:
            setpriv()
    except PrivilegesRefused as refused:
        faults.append((refused.setting, refused.why, refused.remedy))
    try:
        with _taken(rights):
            return faults + _gathered(lambda: _startable(probe, lenient=lenient))
    except PermissionError:
        why = f"{_us()} cannot take the rights of that user here"
        remedy = "see whether the supervisor's unit removes CAP_SETUID or CAP_SETGID"
        return [*faults, ("user", why, remedy)]


def _gathered(probe: Callable[[], None]) -> list[Fault]:
    try:
        probe()
    except ProbeRefused as refused:
        return [refused.fault]
    return []


def _readable(probe: FileProbe, *, lenient: bool) -> None:
    setting, name, folder = probe
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        if isinstance(error, PermissionError) and lenient:
            return
        missing = "make it" if folder else "write it"
        remedy = f"let {_us()} read it" if isinstance(error, PermissionError) else missing
        raise ProbeRefused(
            setting, f"cannot read {name}: {_reason(error)}", f"{remedy}, or correct {setting}"
        ) from None
    mode = os.fstat(fd).st_mode
    os.close(fd)
    if folder and not stat.S_ISDIR(mode):
        raise ProbeRefused(setting, f"cannot read {name}: it is not a folder", f"correct {setting}")
    if not folder and not stat.S_ISREG(mode):
        raise ProbeRefused(setting, f"cannot read {name}: it is not a regular file", f"correct {setting}")


# --- as which user -------------------------------------------------------------------------------


def _rights_of(probe: ProgramProbe) -> Rights:
    return rights_of(
        None if probe.user is None else _user(probe.user),
        None if probe.group is None else _group(probe.group),
    )


def _user(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    except KeyError:
        raise unknown("user", name) from None


def _group(name: str) -> int:
    try:
        return (grp.getgrgid(int(name)) if name.isdecimal() else grp.getgrnam(name)).gr_gid
    except KeyError:
        raise unknown("group", name) from None


@contextmanager
def _taken(rights: Rights) -> Iterator[None]:
    """Let this process have the rights of a command within the block. Raises PermissionError."""
    if not rights.differ:
        yield
        return
    ours = os.getgroups(), os.getegid(), os.geteuid()
    try:
        os.setgroups([] if rights.user is None else os.getgrouplist(rights.user.pw_name, rights.gid))
        os.setegid(rights.gid)
        if rights.user is not None:
            os.seteuid(rights.user.pw_uid)
        yield
    finally:
        groups, gid, uid = ours
        os.seteuid(uid)
        os.setegid(gid)
        os.setgroups(groups)


# --- a program -----------------------------------------------------------------------------------


def _startable(probe: ProgramProbe, *, lenient: bool) -> None:
    cwd = probe.cwd or ""
    try:
        if cwd:
            os.stat(os.path.join(cwd, "."))  # fails as entering the folder does
    except PermissionError:
        if lenient:
            return
        raise ProbeRefused("cwd", f"{_us()} may not enter {cwd}", f"chmod +x {cwd}, or correct cwd") from None
    except (OSError, ValueError) as error:
        raise ProbeRefused(
            "cwd", f"cannot enter {cwd}: {_reason(error)}", "make it, or correct cwd"
        ) from None
    found = _found(probe.program, probe.path, cwd, lenient=lenient)
    if found is None:
        return
    try:
        with open(os.path.join(cwd, found), "rb") as file:
            first = file.read(FIRST_LINE_BYTES)
    except OSError:
        return  # a program can be executed without being readable
    if first.startswith(b"#!"):
        _interpretable(found, os.fsdecode(first[2:].partition(b"\n")[0]), probe.path, cwd)


def _found(name: str, path: str, cwd: str, *, lenient: bool) -> str | None:
    """Return the file that is executed. None: this user cannot find out. Raises ProbeRefused."""
    folders = [""] if "/" in name else path.split(":")
    refused: ProbeRefused | None = None
    for folder in folders:
        file = os.path.join(folder, name)
        try:
            mode = os.stat(os.path.join(cwd, file)).st_mode
        except PermissionError:
            if "/" in name and lenient:
                return None
            fault = ("", f"{_us()} may not look for {file}", "chmod +x its folders")
            refused = refused or ProbeRefused(*fault)
            continue
        except (OSError, ValueError):
            continue
        if not stat.S_ISREG(mode):
            refused = refused or ProbeRefused("", f"{file} is not a program", "correct the path")
        elif _may_execute(cwd, file):
            return file
        elif lenient and mode & 0o111:
            return None
        else:
            refused = refused or ProbeRefused("", f"{_us()} cannot execute {file}", f"chmod +x {file}")
    if refused is not None and ("/" in name or "may not look" not in refused.fault[1]):
        raise refused
    if "/" in name:
        raise ProbeRefused("", f"no such program: {name}", "install it, or correct the path")
    raise ProbeRefused(
        "", f"no such program: {name} is in no folder of PATH, {path}", "install it, or write its path"
    )


def _interpretable(file: str, line: str, path: str, cwd: str) -> None:
    """Check the first line of a script. Raises ProbeRefused when the program that it names is missing."""
    words = line.split()
    if not words:
        return
    remedy = f"install it, or correct the first line of {file}"
    if not _may_execute(cwd, words[0]):
        raise ProbeRefused("", f"{file} is run by {words[0]}, which cannot be executed here", remedy)
    named = words[1:2] if os.path.basename(words[0]) == "env" else []
    for name in named:
        if name.isidentifier() and not any(
            _may_execute(cwd, f"{folder}/{name}") for folder in path.split(":")
        ):
            raise ProbeRefused("", f"{file} is run by {name}, which is in no folder of PATH, {path}", remedy)


def _may_execute(cwd: str, file: str) -> bool:
    return os.access(os.path.join(cwd, file), os.X_OK, effective_ids=True)


def _us() -> str:
    try:
        return f"user {pwd.getpwuid(os.geteuid()).pw_name}"
    except KeyError:
        return f"user id {os.geteuid()}"


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
