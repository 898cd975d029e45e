"""The rights with which a command runs, as a prefix of its argv: util-linux's ``setpriv``.

A wrapper is used because the alternatives inside Python (``preexec_fn``, and ``user=`` of Popen) give up
vfork and copy the daemon's page tables for every hook. A command must never run with other rights than the
configuration declares, so rights that cannot be had are refused.
"""

import os
import pwd
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field

from supervisor.core.settings import Command
from supervisor.filesystem.mounts import program_of, which

LOOKUP_S = 1.0
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class PrivilegesRefused(Exception):
    """The configuration declares rights that cannot be had here. The message names them and the reason."""


@dataclass(frozen=True, slots=True)
class RunAs:
    """How a command is started as its user.

    prefix: the arguments before its argv. Empty: it runs as this process does.
    env: the variables that a login as that user would set.
    """

    prefix: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)


class Privileges:
    """The identities of commands, each looked up once.

    A user directory that hangs (LDAP) delays the caller by ``LOOKUP_S`` for each user not seen yet, and that
    user is refused.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._path = environ.get("PATH", SYSTEM_PATH)
        self._known: dict[tuple[str | None, str | None, bool], RunAs] = {}

    def identity(self, command: Command, *, dies_with_us: bool = False) -> RunAs:
        """Return how to run the command as its user and group.

        With a user, the command has the user's primary group unless another is declared, and the user's
        supplementary groups. With a group only, it has that group and no supplementary groups. Raises
        PrivilegesRefused.

        dies_with_us: whether the kernel kills the command when this process ends (PR_SET_PDEATHSIG in
            prctl(2)).
        """
        rights = (command.user, command.group, dies_with_us)
        if rights not in self._known:
            self._known[rights] = self._identity(*rights)
        return self._known[rights]

    def _identity(self, user: str | None, group: str | None, dies_with_us: bool) -> RunAs:
        entry = None if user is None else _user(user)
        gid = _group(group) if group is not None else entry.pw_gid if entry is not None else None
        options = [*_ids(entry, gid), *(["--pdeathsig", "KILL"] if dies_with_us else [])]
        prefix = (self._setpriv(), *options, "--") if options else ()
        return RunAs(prefix, {} if entry is None else _login(entry))

    def _setpriv(self) -> str:
        program = which("setpriv", self._path) or which("setpriv", SYSTEM_PATH)
        if program is None:
            raise PrivilegesRefused(
                "setpriv is not installed, and run, user and group need it: install util-linux"
            )
        return program


def _ids(entry: pwd.struct_passwd | None, gid: int | None) -> list[str]:
    """Return setpriv's options to become that user and group.

    Empty: this process is that user and group already.

    Raises PrivilegesRefused.
    """
    if entry is None and gid is None:
        return []
    uid = os.geteuid() if entry is None else entry.pw_uid
    if os.geteuid() == 0:
        user = [] if entry is None else ["--reuid", str(uid)]
        return [*user, "--regid", str(gid), "--clear-groups" if entry is None else "--init-groups"]
    if (uid, gid) == (os.geteuid(), os.getegid()):
        return []
    raise PrivilegesRefused(
        f"only root may run a hook as another user or group: user id {uid}, group id {gid}"
    )


def _user(name: str) -> pwd.struct_passwd:
    login, password, uid, gid, gecos, home, shell = _entry("passwd", "user", name, fields=7)
    return pwd.struct_passwd((login, password, int(uid), int(gid), gecos, home, shell))


def _group(name: str) -> int:
    return int(_entry("group", "group", name, fields=4)[2])


def _entry(database: str, what: str, name: str, *, fields: int) -> list[str]:
    """Return the fields of one entry of the user directory, found by a child (``getent``).

    A lookup inside this process could not be given up when the directory hangs. Raises PrivilegesRefused.
    """
    search = os.environ.get("PATH", SYSTEM_PATH)
    try:
        done = subprocess.run(
            [program_of("getent", search), database, "--", name],
            capture_output=True,
            text=True,
            timeout=LOOKUP_S,
            check=False,
            env={"PATH": search},  # without the secrets of our environment
        )
    except subprocess.TimeoutExpired:
        raise PrivilegesRefused(
            f"the directory of {what}s did not answer for {name!r} within {LOOKUP_S:g} s"
        ) from None
    entry = done.stdout.rstrip("\n").split(":")
    if done.returncode != 0 or len(entry) != fields:
        raise PrivilegesRefused(f"unknown {what} {name!r}")
    return entry


def _login(entry: pwd.struct_passwd) -> dict[str, str]:
    return {"USER": entry.pw_name, "LOGNAME": entry.pw_name, "HOME": entry.pw_dir, "SHELL": entry.pw_shell}
