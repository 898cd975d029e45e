"""One probe: whether a command can start here, or whether a file can be read.

A probe may hang in any call of the kernel, so a child makes it (``probe_run``). It must never change
anything, and must never show the content of a file.
"""

import errno
import grp
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from supervisor.adapters.filesystem.executable import CannotExecute, check_executable
from supervisor.adapters.filesystem.mounts import is_local
from supervisor.adapters.hooks.privileges import PrivilegesRefused, Rights, rights_of, setpriv, unknown

Fault = tuple[str, str, str]  # the setting, the reason, and the remedy


class ProgramProbe(NamedTuple):
    """The question whether a command can start."""

    program: str  # the first word of its argv
    path: str  # the PATH in which the program is found
    cwd: str | None = None
    user: str | None = None
    group: str | None = None
    dies_with_us: bool = False  # whether the kernel is to kill the command together with the supervisor
    script: str = ""  # the program that a shell starts first. Blank: the text does not show it


class FileProbe(NamedTuple):
    """The question whether a file, or a folder, can be read. ``setting``: the key that names it."""

    setting: str
    name: str
    is_folder: bool = False
    is_watchdog: bool = False  # it is a device, which must not be opened, because that would start it


Probe = ProgramProbe | FileProbe


def faults_of(probe: Probe, strict: bool) -> list[Fault]:
    """Return every reason why the command or file of this probe cannot be used here.

    strict: whether the supervisor is run by this user. If not, a refusal that concerns this user alone is no
        reason.
    """
    lenient = not strict and os.geteuid() != 0
    if isinstance(probe, FileProbe):
        look = _usable if probe.is_watchdog else _readable
        return list(look(probe, lenient=lenient))
    faults: list[Fault] = []
    rights = Rights()
    try:
        user = None if probe.user is None else _user(probe.user)
        rights = rights_of(user, None if probe.group is None else _group(probe.group))
        if rights.differ or probe.dies_with_us:
            setpriv()
    except PrivilegesRefused as refused:
        faults.append((refused.setting, refused.why, refused.remedy))
    try:
        where = (probe.program, probe.cwd or "/")  # a launcher starts what another machine's disk has
        by_execvp = rights.differ or probe.dies_with_us or not all(map(is_local, where))
        with _taken(rights):
            return [*faults, *_startable(probe, by_execvp=by_execvp, lenient=lenient)]
    except PermissionError:
        why = f"{_us()} cannot take the rights of that user here"
        remedy = "see whether the supervisor's unit removes CAP_SETUID or CAP_SETGID"
        return [*faults, ("user", why, remedy)]


def _readable(probe: FileProbe, *, lenient: bool) -> Iterator[Fault]:
    setting, name, folder, _ = probe
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        if not isinstance(error, PermissionError) or not lenient:
            missing = "make it" if folder else "write it"
            remedy = f"let {_us()} read it" if isinstance(error, PermissionError) else missing
            yield setting, f"cannot read {name}: {_reason(error)}", f"{remedy}, or correct {setting}"
        return
    mode = os.fstat(fd).st_mode
    os.close(fd)
    if folder and not stat.S_ISDIR(mode):
        yield setting, f"cannot read {name}: it is not a folder", f"correct {setting}"
    if not folder and not stat.S_ISREG(mode):
        yield setting, f"cannot read {name}: it is not a regular file", f"correct {setting}"


def _usable(probe: FileProbe, *, lenient: bool) -> Iterator[Fault]:
    from supervisor.adapters.runtime.watchdogs import NOWAYOUT, Kernel  # which few configurations need

    try:
        if Kernel().cannot_stop(probe.name):
            raise OSError(NOWAYOUT)
        if not lenient and not os.access(probe.name, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except (OSError, ValueError) as error:
        remedy = "load its driver or softdog, name another device, or set required: false"
        yield probe.setting, f"cannot open {probe.name}: {_reason(error)}", remedy


# --- as which user -------------------------------------------------------------------------------


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


def _startable(probe: ProgramProbe, *, by_execvp: bool, lenient: bool) -> Iterator[Fault]:
    """Yield the first fault that keeps the command from starting, if there is one."""
    cwd = probe.cwd or ""
    try:
        if cwd:
            os.stat(os.path.join(cwd, "."))  # fails as entering the folder does
    except PermissionError:
        if not lenient:
            yield "cwd", f"{_us()} may not enter {cwd}", f"chmod +x {cwd}, or correct cwd"
        return
    except (OSError, ValueError) as error:
        yield "cwd", f"cannot enter {cwd}: {_reason(error)}", "make it, or correct cwd"
        return
    programs = [(probe.program, by_execvp), *([(probe.script, True)] if probe.script else [])]
    for name, by_shell in programs:
        try:
            found = _found(name, probe.path, cwd, lenient=lenient)
            if found is not None:
                check_executable(found, probe.path, cwd, by_shell=by_shell)
        except CannotExecute as refused:
            yield "", *refused.args
            return


def _found(name: str, path: str, cwd: str, *, lenient: bool) -> str | None:
    """Return the file that is executed. None: this user cannot find out. Raises CannotExecute."""
    folders = [""] if "/" in name else path.split(":")
    refused: CannotExecute | None = None
    for folder in folders:
        file = os.path.join(folder, name)
        try:
            mode = os.stat(os.path.join(cwd, file)).st_mode
        except PermissionError:
            if "/" in name and lenient:
                return None
            refused = refused or CannotExecute(f"{_us()} may not look for {file}", "chmod +x its folders")
            continue
        except (OSError, ValueError):
            continue
        if not stat.S_ISREG(mode):
            refused = refused or CannotExecute(f"{file} is not a program", "correct the path")
        elif os.access(os.path.join(cwd, file), os.X_OK, effective_ids=True):
            return file
        elif lenient and mode & 0o111:
            return None
        else:
            is_noexec = os.geteuid() == 0 and mode & 0o111
            remedy = "mount its file system without noexec" if is_noexec else f"chmod +x {file}"
            refused = refused or CannotExecute(f"{_us()} cannot execute {file}", remedy)
    if refused is not None and ("/" in name or "may not look" not in refused.args[0]):
        raise refused
    if "/" in name:
        raise CannotExecute(f"no such program: {name}", "install it, or correct the path")
    missing = f"no such program: {name} is in no folder of PATH, {path}"
    raise CannotExecute(missing, "install it, or write its path")


def _us() -> str:
    try:
        return f"user {pwd.getpwuid(os.geteuid()).pw_name}"
    except KeyError:
        return f"user id {os.geteuid()}"


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
