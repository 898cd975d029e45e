"""The file of the control socket: made, guarded by its mode, and replaced when a crash left it behind.

No client can connect before the mode is right, because the mode is set between bind and listen. A file
that is not a socket, or a socket on which a process answers, must never be removed.
"""

import grp
import os
import socket
import stat
from contextlib import suppress
from pathlib import Path

from supervisor.errors import OperatorError

OWNER_ONLY = 0o600
OWNER_AND_GROUP = 0o660
REMEDY = "set control_socket to a path where this user may make one"


class ControlError(OperatorError):
    """The control socket cannot be made.

    no_place: whether the only reason is that this user may not make a socket in that folder.
    """

    def __init__(self, text: str, *, no_place: bool = False) -> None:
        super().__init__(text)
        self.no_place = no_place


def group_id(name: str | None) -> int | None:
    """Return the group's number. None: no name is given. Raises ControlError when there is no such group."""
    if name is None:
        return None
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise ControlError(
            f"cannot let group {name} use the control socket: there is no such group; make it, "
            "or change control_group"
        ) from None


def bound(path: Path, gid: int | None, *, replaces_link: bool = False) -> socket.socket:
    """Return a socket bound to ``path``.

    gid: the group that may use the socket besides our own user. None: no group.
    replaces_link: whether ``path`` is where commands look, so that another daemon may have left a link there.
    Raises ControlError.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if replaces_link and path.is_symlink():
            path.unlink()
        _remove_stale(path)
        sock.bind(os.fsencode(path))
        try:
            _guard(path, gid)
        except BaseException:
            path.unlink()
            raise
    except BaseException as error:
        sock.close()
        if not isinstance(error, OSError):
            raise
        why = error.strerror or str(error)
        raise ControlError(f"cannot make the control socket {path}: {why}; {REMEDY}", no_place=True) from None
    return sock


def make_link(link: Path, path: Path) -> None:
    """Link to the socket at ``path``, in place of another link, if this user may. Any other file stays."""
    with suppress(OSError):
        link.parent.mkdir(parents=True, exist_ok=True)
        if link.is_symlink():
            link.unlink()
        link.symlink_to(path)


def remove_link(link: Path, path: Path) -> None:
    """Remove the link, unless it leads to the socket of a daemon that was started later."""
    with suppress(OSError):  # of readlink for what is no link, too
        if link.readlink() == path:
            link.unlink()


def _guard(path: Path, gid: int | None) -> None:
    path.chmod(OWNER_ONLY)
    if gid is not None:
        try:
            os.chown(path, -1, gid)
        except OSError as error:
            why = f"{error.strerror}; only root and members of a group may give it a file"
            raise ControlError(f"cannot let group {gid} use the control socket {path}: {why}") from None
        path.chmod(OWNER_AND_GROUP)


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ControlError(
            f"cannot make the control socket {path}: the file that is there is not a socket; "
            f"remove it, or {REMEDY}"
        )
    if _is_answered(path):
        raise ControlError(
            f"cannot make the control socket {path}: another consul-supervisor answers on it; "
            "each needs a control_socket of its own"
        )
    path.unlink(missing_ok=True)


def _is_answered(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fsencode(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except BlockingIOError:  # the queue is full, so a process listens
            return True
    return True
