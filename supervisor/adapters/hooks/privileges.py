"""The rights with which a command runs, as a prefix of its argv: util-linux's ``setpriv``.

A wrapper is used because the alternatives inside Python (``preexec_fn``, and ``user=`` of Popen) give up
vfork and copy the daemon's page tables for every hook. A command must never run with other rights than the
configuration declares, so rights that cannot be had are refused.
"""

import os
import pwd
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

from supervisor.adapters.filesystem.children import Child, spawn
from supervisor.adapters.filesystem.mounts import program_of, which
from supervisor.core.settings import Command

LOOKUP_S = 1.0
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class PrivilegesRefused(Exception):
    """Rights that cannot be had here. ``setting``: the key that declares them. Blank: no single one does."""

    def __init__(self, setting: str, why: str, remedy: str) -> None:
        self.setting, self.why, self.remedy = setting, why, remedy
        super().__init__(f"{why}: {remedy}")


@dataclass(frozen=True, slots=True)
class Rights:
    """The user and group of a command, as in credentials(7)."""

    differ: bool = False  # whether this process has other rights. Else they need nothing
    user: pwd.struct_passwd | None = None  # None: the user stays, and there are no supplementary groups
    gid: int = -1


@dataclass(frozen=True, slots=True)
class RunAs:
    """The way to start a command as its user."""

    prefix: tuple[str, ...] = ()  # the arguments before its argv. Empty: it runs as this process does
    env: dict[str, str] = field(default_factory=dict)  # the variables that a login as that user would set


class Privileges:
    """The ways to run commands as their users and groups, each looked up once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str | None, str | None, bool], RunAs] = {}

    def identity(self, command: Command, *, dies_with_us: bool = False) -> RunAs | None:
        """Return how to run the command as its user and group. None: they have to be looked up first.

        With a user, the command has the user's primary group unless another is declared, and the user's
        supplementary groups. With a group only, it has that group and no supplementary groups. Raises
        PrivilegesRefused.

        dies_with_us: whether the kernel kills the command when this process ends (PR_SET_PDEATHSIG in
            prctl(2)).
        """
        declared = (command.user, command.group, dies_with_us)
        if declared not in self._known and command.user is None and command.group is None:
            self._known[declared] = _run_as(Rights(), dies_with_us)
        return self._known.get(declared)

    async def look_up(self, command: Command, *, dies_with_us: bool = False) -> None:
        """Look up the user and group by children (``getent``), because a directory of users may hang (LDAP).

        Raises PrivilegesRefused, also when the directory does not answer within LOOKUP_S, and OSError when no
        child can be started.
        """
        if self.identity(command, dies_with_us=dies_with_us) is None:
            user = None if command.user is None else await _user(command.user)
            gid = None if command.group is None else await _group(command.group)
            known = _run_as(rights_of(user, gid), dies_with_us)
            self._known[command.user, command.group, dies_with_us] = known


def rights_of(user: pwd.struct_passwd | None, gid: int | None) -> Rights:
    """Return the rights of a command with this user and group, if any. Raises PrivilegesRefused."""
    if user is not None and gid is None:
        gid = user.pw_gid
    if gid is None:
        return Rights()
    uid = os.geteuid() if user is None else user.pw_uid
    differ = os.geteuid() == 0 or (uid, gid) != (os.geteuid(), os.getegid())
    if differ and os.geteuid() != 0:
        setting, remedy = "group" if user is None else "user", "run the supervisor as root, or remove it"
        why = f"only root may run a hook as another user or group: user id {uid}, group id {gid}"
        raise PrivilegesRefused(setting, why, remedy)
    return Rights(differ, user, gid)


def setpriv() -> str:
    """Return the path of setpriv. Raises PrivilegesRefused."""
    program = which("setpriv", os.environ.get("PATH", SYSTEM_PATH)) or which("setpriv", SYSTEM_PATH)
    if program is None:
        why = "setpriv is not installed, and run, user and group need it"
        raise PrivilegesRefused("", why, "install util-linux")
    return program


def unknown(what: str, name: str) -> PrivilegesRefused:
    """Return the refusal of a user or group that does not exist. ``what``: the key that names it."""
    return PrivilegesRefused(what, f"unknown {what} {name!r}", f"add the {what}, or correct {what}")


def _run_as(rights: Rights, dies_with_us: bool) -> RunAs:
    options, login, user = ["--pdeathsig", "KILL"] if dies_with_us else [], {}, rights.user
    if user is not None:
        login = {"USER": user.pw_name, "LOGNAME": user.pw_name, "HOME": user.pw_dir, "SHELL": user.pw_shell}
    if rights.differ:
        reuid = [] if user is None else ["--reuid", str(user.pw_uid)]
        groups = "--clear-groups" if user is None else "--init-groups"
        options = [*reuid, "--regid", str(rights.gid), groups, *options]
    return RunAs((setpriv(), *options, "--") if options else (), login)


async def _user(name: str) -> pwd.struct_passwd:
    login, password, uid, gid, gecos, home, shell = await _entry("passwd", "user", name, fields=7)
    return pwd.struct_passwd((login, password, int(uid), int(gid), gecos, home, shell))


async def _group(name: str) -> int:
    return int((await _entry("group", "group", name, fields=4))[2])


async def _entry(database: str, what: str, name: str, *, fields: int) -> list[str]:
    """Return the fields of one entry of the directory of users. Raises PrivilegesRefused."""
    search = os.environ.get("PATH", SYSTEM_PATH)
    argv = [program_of("getent", search), database, "--", name]
    # The PATH is its whole environment, without the secrets of ours.
    with closing(Child(f"{what} {name}", partial(spawn, argv, {"PATH": search}))) as child:
        if not await child.comes_to_end(LOOKUP_S):
            why = f"the directory of {what}s did not answer for {name!r} within {LOOKUP_S:g} s"
            raise PrivilegesRefused(what, why, "see whether it can be reached")
        code, entry = child.wait(), child.result().decode(errors="replace").rstrip("\n").split(":")
    if code != 0 or len(entry) != fields:
        raise unknown(what, name)
    return entry
