"""The process at the other end of a unix socket, as the kernel knows it. Linux only."""

import socket
import struct
from dataclasses import dataclass

CREDENTIALS = "=iII"  # struct ucred: pid, uid, gid
SO_PEERGROUPS = 59  # asm-generic/socket.h; Python has no name for it
GROUPS_BYTES_MAX = 1024  # the limit of Python's getsockopt: 256 groups


@dataclass(frozen=True, slots=True)
class Peer:
    """The process that connected to a unix socket: effective ids and supplementary groups."""

    pid: int
    uid: int
    gid: int
    groups: tuple[int, ...] = ()


def peer_of(sock: socket.socket) -> Peer | None:
    """Return the process at the other end of a connection. None: the connection uses TCP.

    The ids are those of the moment when the process connected, so a later change gives it no rights.
    """
    if sock.family != socket.AF_UNIX:
        return None
    size = struct.calcsize(CREDENTIALS)
    found = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    try:
        packed = sock.getsockopt(socket.SOL_SOCKET, SO_PEERGROUPS, GROUPS_BYTES_MAX)
    except OSError:  # a kernel before 4.13, or a process in more groups than that
        packed = b""
    pid, uid, gid = struct.unpack(CREDENTIALS, found)
    return Peer(pid, uid, gid, tuple(group for (group,) in struct.iter_unpack("=I", packed)))
