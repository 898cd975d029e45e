"""Warnings about files by which other users of this machine read secrets or change what the daemon runs.

The files are those of the configuration and those that it names. The module refuses nothing, changes nothing,
and never shows the content of a file. It looks at modes and owners, not at access lists (ACLs), and not at
files on another machine's disk, because that file system may not answer. Root and the user of this process
are trusted, and so is a group whose number is that of a file's owner.
"""

import os
import shlex
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from supervisor.adapters.filesystem.mounts import is_local
from supervisor.config import Config, Problem
from supervisor.core.settings import Command, Tls, Webhook

ROOT = 0
FAR_STATE = (
    "it is not on a disk of this machine: while its file system does not answer, a start after a boot "
    "winds up nothing: choose a local folder"
)
PROGRAMS_MAX = 1000  # of a configuration, because each takes some calls of the kernel


def audit(path: Path, config: Config, *, also_secret: Sequence[Path] = ()) -> tuple[Problem, ...]:
    """Return the warnings about the configuration at ``path`` and the files that it names.

    A file that this user may not look at is passed over. The call may hang when a file system does.
    also_secret: files with secrets that the configuration does not name.
    """
    audit = _Audit()
    for file in _files_of(path):
        audit.check_changes(file)
        audit.check_token_readable(file, config.consul.token)
    hooks = [
        (f"{item.kind}s.{item.name}.{hook.name}", hook.call) for item in config.items for hook in item.hooks
    ]
    commands = [call for _, call in hooks if isinstance(call, Command)]
    commands += [item.run.command for item in config.items if item.run is not None]
    own = (call.argv[0] for call in commands if call.user is None and call.argv[0].startswith("/"))
    for program in list(dict.fromkeys(own))[:PROGRAMS_MAX]:
        audit.check_changes(Path(program))
    webhooks = [(place, call) for place, call in hooks if isinstance(call, Webhook)]
    tls = [("consul.tls", config.consul.tls), *((f"{place}.tls", call.tls) for place, call in webhooks)]
    secrets = [
        ("consul.token_file", config.consul.token_file),
        *((f"{place}.secret_file", call.secret_file) for place, call in webhooks),
        *((f"{setting}.key_file", each.key_file) for setting, each in tls),
        *(("", str(file)) for file in also_secret),
    ]
    for setting, name in secrets:
        if name is not None:
            audit.check_secret(Path(name), setting)
    for setting, each in tls:
        if _tls_files(each):
            audit.check_tls_loads(each, setting)
    audit.check_state_dir(Path(config.state_dir))
    return tuple(audit.problems)


class _Audit:
    """Collects the warnings, each of them once."""

    def __init__(self) -> None:
        self.problems: dict[Problem, None] = {}
        self._uid = os.geteuid()

    def check_changes(self, path: Path, setting: str = "") -> None:
        """Check who else can change a file or folder that decides what runs, or replace it in its folder.

        In a sticky folder, as /tmp is, users can remove only their own files, so nothing else is replaced.
        """
        for each, of in ((path, setting), (path.parent, "")):
            found = _status(each)
            if found is None or (each != path and found.st_mode & stat.S_ISVTX):
                continue
            harm = f"change what runs as {'root' if self._uid == ROOT else 'this user'}"
            harm = "replace what is in it" if stat.S_ISDIR(found.st_mode) else harm
            if found.st_uid not in (ROOT, self._uid):
                self._warn(each, of, f"its owner, user id {found.st_uid}, can {harm}", "chown root")
            if found.st_mode & stat.S_IWOTH:
                self._warn(each, of, f"everybody can {harm}", "chmod go-w")
            elif found.st_mode & stat.S_IWGRP and found.st_gid != found.st_uid:
                self._warn(each, of, f"its group can {harm}", "chmod go-w")

    def check_secret(self, path: Path, setting: str) -> None:
        found = _status(path)
        if found is not None and found.st_mode & stat.S_IROTH:
            self._warn(path, setting, "everybody can read this secret", "chmod o=")

    def check_token_readable(self, file: Path, token: str | None) -> None:
        """Check a file of the configuration, which may hold the token."""
        if token is None or not is_local(str(file)):
            return
        with suppress(OSError):
            if file.stat().st_mode & stat.S_IROTH and token.encode() in file.read_bytes():
                self._warn(file, "consul.token", "everybody can read the token in it", "chmod o=")

    def check_state_dir(self, path: Path) -> None:
        """Check the folder of the records, which decide what runs and may hold secrets of hooks."""
        if not is_local(str(path)):
            self._add(path, "state_dir", FAR_STATE)
        self.check_changes(path, "state_dir")
        found = _status(path)
        if found is not None and found.st_mode & stat.S_IRWXO:
            self._warn(path, "state_dir", "everybody can look into it", "chmod 0700")

    def check_tls_loads(self, tls: Tls, setting: str) -> None:
        """Check that the TLS files can be loaded, before the first connection needs them."""
        files = _tls_files(tls)
        if not all(is_local(file) and os.access(file, os.R_OK) for file in files):
            return
        from supervisor.adapters.transport import ExchangeFailed
        from supervisor.adapters.transport.tls import TlsContext

        try:
            TlsContext(tls).current()
        except ExchangeFailed as failure:
            self.problems[Problem("", 0, 0, setting, str(failure))] = None

    def _warn(self, path: Path, setting: str, what: str, remedy: str) -> None:
        self._add(path, setting, f"{what}: {remedy} {shlex.quote(str(path))}")

    def _add(self, path: Path, setting: str, message: str) -> None:
        self.problems[Problem(str(path), 0, 0, setting, message)] = None


def _status(path: Path) -> os.stat_result | None:
    """Return the status of a file or folder. None: it cannot be looked at, maybe for want of a right."""
    try:
        return path.stat() if is_local(str(path)) else None
    except (OSError, ValueError):
        return None


def _files_of(path: Path) -> Iterator[Path]:
    yield path
    with suppress(OSError):
        if path.is_dir():
            yield from (file for file in sorted(path.iterdir()) if file.suffix in (".yml", ".yaml"))


def _tls_files(tls: Tls) -> list[str]:
    return [name for name in (tls.ca_file, tls.ca_path, tls.cert_file, tls.key_file) if name]
