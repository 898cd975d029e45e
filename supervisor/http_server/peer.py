"""Who is at the other end of a unix socket, as the kernel knows it. Linux only."""

import socket
import struct
from dataclasses import dataclass

CREDENTIALS = "=iII"  # struct ucred: pid, uid, gid
SO_PEERGROUPS = 59  # asm-generic/socket.h; Python has no name for it
GROUPS_BYTES_MAX = 1024  # all that Python's getsockopt can fetch: 256 groups


@dataclass(frozen=True, slots=True)
class Peer:
    """Who connected to a unix socket, as the kernel knows it: effective ids, supplementary groups."""

    pid: int
    uid: int
    gid: int
    groups: tuple[int, ...] = ()


def peer_of(sock: socket.socket) -> Peer | None:
    """The other end of a connection; None over TCP.

    As it was when it connected: what the process has become since gives it no rights.
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
