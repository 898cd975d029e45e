"""Warnings about files through which other users of this machine can read secrets or change what runs.

The files are those of the configuration and those that it names. The module looks at their modes, their
owners, and the folders through which they can be replaced. The module refuses nothing, changes nothing, and
never shows the content of a file. It does not look at access lists beyond the mode (ACLs). It does not look
at files on another machine's disk, because that file system may not answer.

Root and the user of this process are trusted, and so is a group whose number is that of a file's owner.
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


def audit(
    path: Path, config: Config, *, in_use: bool, also_secret: Sequence[Path] = ()
) -> tuple[Problem, ...]:
    """Return the warnings about the configuration at ``path`` and the files that it names.

    A file that this user may not look at is passed over. The call may hang when a file system does.
    in_use: whether the configuration is in use on this machine. Only then a secret or TLS file that cannot
        be read is a warning.
    also_secret: files with secrets that the configuration does not name.
    """
    audit = _Audit(in_use)
    for file in _files_of(path):
        audit.check_executable(file)
        audit.check_token_readable(file, config.consul.token)
    hooks = [
        (f"{item.kind}s.{item.name}.{hook.name}", hook.call) for item in config.items for hook in item.hooks
    ]
    commands = [call for _, call in hooks if isinstance(call, Command)]
    commands += [item.run.command for item in config.items if item.run is not None]
    own = (call.argv[0] for call in commands if call.user is None and call.argv[0].startswith("/"))
    for program in list(dict.fromkeys(own))[:PROGRAMS_MAX]:
        audit.check_executable(Path(program))
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
    if config.control is not None:
        audit.check_folders(Path(config.control.path), "control_socket")
    return tuple(audit.problems)


class _Audit:
    """Collects the warnings, each of them once."""

    def __init__(self, in_use: bool) -> None:
        self.problems: dict[Problem, None] = {}
        self._in_use = in_use
        self._uid = os.geteuid()
        self._runs = f"change what runs as {'root' if self._uid == ROOT else 'this user'}"
        self._seen: set[Path] = set()

    def check_executable(self, path: Path) -> None:
        self._seen.add(Path(os.path.abspath(path)))
        self._check(path, "", self._runs)
        self.check_folders(path, "")

    def check_secret(self, path: Path, setting: str) -> None:
        found = self._check(path, setting, "change this secret", is_needed=self._in_use)
        if found is None:
            return
        if found.st_mode & stat.S_IROTH:
            self._warn(path, setting, "everybody can read this secret", "chmod o=")
        self.check_folders(path, setting)

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
        found = self._check(path, "state_dir", self._runs)
        if found is not None and found.st_mode & stat.S_IRWXO:
            self._warn(path, "state_dir", "everybody can look into it", "chmod 0700")
        self.check_folders(path, "state_dir")

    def check_folders(self, path: Path, setting: str) -> None:
        """Check all folders above ``path``, through which the file at ``path`` could be replaced."""
        for folder in _folders_of(path):
            if folder not in self._seen:
                self._seen.add(folder)
                self._check(folder, setting, "", is_above=True)

    def check_tls_loads(self, tls: Tls, setting: str) -> None:
        """Check that the TLS files can be loaded, before the first connection needs them."""
        files = _tls_files(tls)
        if not all(map(is_local, files)):
            return
        if not self._in_use and not all(os.access(file, os.R_OK) for file in files):
            return
        from supervisor.adapters.transport import ExchangeFailed
        from supervisor.adapters.transport.tls import TlsContext

        try:
            TlsContext(tls).current()
        except ExchangeFailed as failure:
            self.problems[Problem("", 0, 0, setting, str(failure))] = None

    def _check(
        self, path: Path, setting: str, harm: str, *, is_needed: bool = False, is_above: bool = False
    ) -> os.stat_result | None:
        """Check which other users can change a file or folder, and return its status.

        harm: what another user could do with the file.
        is_needed: whether a file that cannot be read is a warning.
        is_above: whether ``path`` is a folder above the file in question. If it is sticky, as /tmp is, users
            can remove only their own files in it, so the file in question cannot be replaced.
        None: ``path`` cannot be looked at.
        """
        if not is_local(str(path)):
            return None
        try:
            found = path.stat()
        except PermissionError:
            return None  # the user of `check` may lack the right to look at it
        except (OSError, ValueError) as error:
            if is_needed:
                self._add(path, setting, f"cannot be read: {getattr(error, 'strerror', error)}")
            return None
        if is_above and found.st_mode & stat.S_ISVTX:
            return found
        harm = "replace what is in it" if stat.S_ISDIR(found.st_mode) else harm
        if found.st_uid not in (ROOT, self._uid):
            self._warn(path, setting, f"its owner, user id {found.st_uid}, can {harm}", "chown root")
        if found.st_mode & stat.S_IWOTH:
            self._warn(path, setting, f"everybody can {harm}", "chmod go-w")
        elif found.st_mode & stat.S_IWGRP and found.st_gid != found.st_uid:
            self._warn(path, setting, f"its group can {harm}", "chmod go-w")
        return found

    def _warn(self, path: Path, setting: str, what: str, remedy: str) -> None:
        self._add(path, setting, f"{what}: {remedy} {shlex.quote(str(path))}")

    def _add(self, path: Path, setting: str, message: str) -> None:
        self.problems[Problem(str(path), 0, 0, setting, message)] = None


def _folders_of(path: Path) -> Iterator[Path]:
    """Yield all folders above the path, both as it is written and with its symlinks resolved."""
    written = Path(os.path.abspath(path))
    yield from written.parents
    if is_local(str(written)):
        with suppress(OSError, ValueError, RuntimeError):  # RuntimeError: symlinks in a circle
            yield from written.resolve().parents


def _files_of(path: Path) -> Iterator[Path]:
    yield path
    with suppress(OSError):
        if path.is_dir():
            yield from (file for file in sorted(path.iterdir()) if file.suffix in (".yml", ".yaml"))


def _tls_files(tls: Tls) -> list[str]:
    return [name for name in (tls.ca_file, tls.ca_path, tls.cert_file, tls.key_file) if name]
