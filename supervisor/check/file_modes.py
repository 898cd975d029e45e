"""Who else on this machine may read our secrets or change what we run, and how to mend that.

The files that a configuration names, and those that it consists of: their modes, their owners, and
the folders through which they can be replaced. It looks and warns; it refuses nothing, changes
nothing, and never shows what a file holds. Access lists beyond the mode (ACLs) are not looked at, nor is
what lies on another machine's disk, because its file system may not answer.

Trusted are root, the user that we run as, and a user's own group, whose number is the user's.
"""

import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from supervisor.config import Config, Problem
from supervisor.core.settings import Command, Tls, Webhook
from supervisor.filesystem.mounts import is_local

ROOT = 0
FAR_STATE = (
    "it lies on no disk of this machine: while its file system does not answer, nothing can be recorded, and "
    "a restart winds up nothing: choose a local folder"
)
REPLACES = "replace what is in it"
PROGRAMS_MAX = 1000  # of a configuration; each costs some calls of the kernel


def precautions(path: Path, config: Config, *, in_use: bool) -> tuple[Problem, ...]:
    """What others may do, for the configuration at ``path`` and whatever it names. What we may not look
    at is passed over, and so is what is not there, unless the configuration is ``in_use`` here."""
    return look(question(path, config, in_use=in_use))


def question(path: Path, config: Config, *, in_use: bool) -> dict[str, Any]:
    """Return the question as plain values for another process; looks at nothing."""
    return {
        "path": str(path),
        "in_use": in_use,
        "token": config.consul.token,
        "programs": _programs(config),
        "secrets": list(_secrets(config)),
        "tls": [(setting, asdict(tls)) for setting, tls in _tls(config)],
        "state_dir": config.state_dir,
        "control": None if config.control is None else config.control.path,
    }


def look(question: dict[str, Any]) -> tuple[Problem, ...]:
    """Answer such a question. The call may hang where a file system does."""
    look = _Look(os.geteuid(), question["in_use"])
    for file in _files_of(Path(question["path"])):
        look.runs(file)
        look.holds_token(file, question["token"])
    for program in question["programs"]:
        look.runs(Path(program))
    for setting, name in question["secrets"]:
        look.secret(Path(name), setting)
    for setting, tls in question["tls"]:
        look.usable(Tls(**tls), setting)
    look.state(Path(question["state_dir"]))
    if question["control"] is not None:
        look.folders(Path(question["control"]), "control_socket")
    return tuple(look.problems)


class _Look:
    """Collects what is found, each once."""

    def __init__(self, uid: int, in_use: bool) -> None:
        self.problems: dict[Problem, None] = {}
        self._in_use = in_use
        self._trusted = (ROOT, uid)
        self._runs = f"change what runs as {'root' if uid == ROOT else 'this user'}"
        self._seen: set[Path] = set()

    def runs(self, path: Path) -> None:
        """A program or a file of the configuration."""
        status = _status(path)
        if status is not None:
            self._changeable(path, status, "", REPLACES if stat.S_ISDIR(status.st_mode) else self._runs)
        self.folders(path, "")

    def secret(self, path: Path, setting: str) -> None:
        """A file that only we are to read."""
        if not is_local(str(path)):
            return
        try:
            status = path.stat()
        except PermissionError:
            return  # `check` may be run by somebody who is not to read it
        except (OSError, ValueError) as error:
            if self._in_use:
                self._say(path, setting, f"cannot be read: {getattr(error, 'strerror', error)}")
            return
        if status.st_mode & stat.S_IROTH:
            self._warn(path, setting, "everybody can read this secret", "chmod o=")
        self._changeable(path, status, setting, "change this secret")
        self.folders(path, setting)

    def holds_token(self, file: Path, token: str | None) -> None:
        """A file of the configuration, in which the token may stand."""
        status = _status(file)
        if token is None or status is None or not status.st_mode & stat.S_IROTH:
            return
        with suppress(OSError):
            if token.encode() in file.read_bytes():
                self._warn(file, "consul.token", "everybody can read the token in it", "chmod o=")

    def state(self, path: Path) -> None:
        """What is on record decides what runs, and may hold secrets of hooks."""
        if not is_local(str(path)):
            self._say(path, "state_dir", FAR_STATE)
        status = _status(path)
        if status is not None:
            self._changeable(path, status, "state_dir", self._runs)
            if status.st_mode & stat.S_IRWXO:
                self._warn(path, "state_dir", "everybody can look into it", "chmod 0700")
        self.folders(path, "state_dir")

    def folders(self, path: Path, setting: str) -> None:
        """Those through which another file could be put in its place. Where everybody may write and
        nobody may remove what is another's (/tmp) that cannot be."""
        for folder in _folders_of(path):
            status = _status(folder)
            if status is not None and folder not in self._seen and not status.st_mode & stat.S_ISVTX:
                self._changeable(folder, status, setting, REPLACES)
            self._seen.add(folder)

    def usable(self, tls: Tls, setting: str) -> None:
        """Else it would be met with the first connection, perhaps at night."""
        files = [Path(name) for name in (tls.ca_file, tls.ca_path, tls.cert_file, tls.key_file) if name]
        if not all(is_local(str(file)) for file in files):
            return
        if not self._in_use and not all(os.access(file, os.R_OK) for file in files):
            return
        from supervisor.transport import ExchangeFailed
        from supervisor.transport.tls import TlsContext

        try:
            TlsContext(tls).current()
        except ExchangeFailed as failure:
            self.problems[Problem("", 0, 0, setting, str(failure))] = None

    def _changeable(self, path: Path, status: os.stat_result, setting: str, what: str) -> None:
        if status.st_uid not in self._trusted:
            self._warn(path, setting, f"its owner, user id {status.st_uid}, can {what}", "chown root")
        if writers := _writers(status):
            self._warn(path, setting, f"{writers} can {what}", "chmod go-w")

    def _warn(self, path: Path, setting: str, what: str, mend: str) -> None:
        self._say(path, setting, f"{what}: {mend} {shlex.quote(str(path))}")

    def _say(self, path: Path, setting: str, message: str) -> None:
        self.problems[Problem(str(path), 0, 0, setting, message)] = None


def _status(path: Path) -> os.stat_result | None:
    if not is_local(str(path)):
        return None  # its file system may not answer
    try:
        return path.stat()
    except (OSError, ValueError):
        return None


def _writers(status: os.stat_result) -> str:
    """Who can write beside the owner; blank: nobody."""
    if status.st_mode & stat.S_IWOTH:
        return "everybody"
    return "its group" if status.st_mode & stat.S_IWGRP and status.st_gid != status.st_uid else ""


def _folders_of(path: Path) -> Iterator[Path]:
    """All folders above it, as it is written and where its symlinks lead."""
    written = Path(os.path.abspath(path))
    yield from written.parents
    if not is_local(str(written)):
        return
    with suppress(OSError, ValueError, RuntimeError):  # RuntimeError: symlinks in a circle
        yield from written.resolve().parents


def _files_of(path: Path) -> Iterator[Path]:
    yield path
    with suppress(OSError):
        if path.is_dir():
            yield from (file for file in sorted(path.iterdir()) if file.suffix in (".yml", ".yaml"))


def _hooks(config: Config) -> Iterator[tuple[str, Command | Webhook]]:
    for item in config.items:
        for hook in item.hooks:
            yield f"{item.kind}s.{item.name}.{hook.name}", hook.call


def _programs(config: Config) -> list[str]:
    """Those named by their path that run with our own rights."""
    calls = [call for _, call in _hooks(config) if isinstance(call, Command)]
    calls += [item.run.command for item in config.items if item.run is not None]
    own = (call.argv[0] for call in calls if call.user is None and call.argv[0].startswith("/"))
    return list(dict.fromkeys(own))[:PROGRAMS_MAX]


def _secrets(config: Config) -> Iterator[tuple[str, str]]:
    if config.consul.token_file is not None:
        yield "consul.token_file", config.consul.token_file
    for place, call in _hooks(config):
        if isinstance(call, Webhook) and call.secret_file is not None:
            yield f"{place}.secret_file", call.secret_file
    for setting, tls in _tls(config):
        if tls.key_file is not None:
            yield f"{setting}.key_file", tls.key_file


def _tls(config: Config) -> Iterator[tuple[str, Tls]]:
    """Where files are named at all."""
    found = [("consul.tls", config.consul.tls)]
    found += [(f"{place}.tls", call.tls) for place, call in _hooks(config) if isinstance(call, Webhook)]
    for setting, tls in found:
        if any((tls.ca_file, tls.ca_path, tls.cert_file, tls.key_file)):
            yield setting, tls
