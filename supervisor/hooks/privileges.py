"""With whose rights a command runs, as a prefix of its argv: util-linux's ``setpriv``.

A wrapper, because the alternatives inside Python (``preexec_fn``, and ``user=`` of Popen) give up
vfork and copy the daemon's page tables for every hook. It must never run a command with other
rights than the file asks for: what cannot be done is refused.
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
    """The operator asks for rights that cannot be had here; the text says which and why."""


@dataclass(frozen=True, slots=True)
class RunAs:
    """``prefix`` goes before argv; ``env`` is what a login as that user would set."""

    prefix: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)


class Privileges:
    """Finds identities, and remembers those found. A user directory that hangs (LDAP) delays whoever
    asks for a user not seen yet by ``LOOKUP_S``, and that hook fails."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._path = environ.get("PATH", SYSTEM_PATH)
        self._known: dict[tuple[str | None, str | None, bool], RunAs] = {}

    def identity(self, command: Command, *, dies_with_us: bool = False) -> RunAs:
        """How to run the command as its user and group; ``dies_with_us``: KILL when we end.

        With a user: its primary group unless another is given, and its supplementary groups.
        With a group only: that group and no supplementary ones. Raises PrivilegesRefused.
        """
        asked = (command.user, command.group, dies_with_us)
        if asked not in self._known:
            self._known[asked] = self._identity(*asked)
        return self._known[asked]

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
    """setpriv's options to become that user and group; none when we are it already."""
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
    """By a child: a lookup inside this process could not be given up."""
    search = os.environ.get("PATH", SYSTEM_PATH)
    try:
        done = subprocess.run(
            [program_of("getent", search), database, "--", name],
            capture_output=True,
            text=True,
            timeout=LOOKUP_S,
            check=False,
            env={"PATH": search},  # no secret of ours
        )
    except subprocess.TimeoutExpired:
        raise PrivilegesRefused(
            f"the directory of {what}s did not tell {name!r} within {LOOKUP_S:g} s"
        ) from None
    entry = done.stdout.rstrip("\n").split(":")
    if done.returncode != 0 or len(entry) != fields:
        raise PrivilegesRefused(f"unknown {what} {name!r}")
    return entry


def _login(entry: pwd.struct_passwd) -> dict[str, str]:
    return {"USER": entry.pw_name, "LOGNAME": entry.pw_name, "HOME": entry.pw_dir, "SHELL": entry.pw_shell}
