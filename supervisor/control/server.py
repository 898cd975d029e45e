"""The daemon's end: who may ask, what is asked, and what is told.

What may be read over HTTP may be read here, too, by those who may give commands. A reply may come
after a while, when what was asked for is done; but it must never wait for whoever asks: the server's
limits are small here, for a command is short and the one who gives it is on this machine.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from supervisor.config import ControlSettings
from supervisor.control.listener import ControlError, bound, group_id
from supervisor.control.protocol import (
    STATUSES,
    Command,
    InvalidCommand,
    Outcome,
    Reply,
    body_of,
    command_of,
    error_body,
)
from supervisor.http_server import HttpAnswer, HttpRequest, HttpServer, Limits, Peer

LIMITS = Limits(
    clients_max=32,  # people and their scripts
    slow_readers_max=16,
    head_bytes_max=8192,
    body_bytes_max=4096,
    receive_s=5.0,
    send_s=5.0,
    idle_s=10.0,
)
UNHEARD = Reply(Outcome.IMPOSSIBLE, "the client disconnected before the reply; the command continues")
ROOT = 0
READING = ("GET", "HEAD", "OPTIONS")
JSON = ("Content-Type", "application/json")

Ask = Callable[[Command], Awaitable[Reply]]
Note = Callable[[Command, Reply, Peer], None]
Read = Callable[[HttpRequest], Awaitable[HttpAnswer]]


class Control:
    """The control socket of one daemon, independent of what the daemon is.

    ``group``: whose members may use it, beside root and our own user. ``ask`` decides about a
    command and does it; ``note`` is told of every command that was asked, for the log; ``read``
    answers what is no command and does nothing (GET, HEAD, OPTIONS).
    """

    def __init__(self, path: str, group: str | None, ask: Ask, note: Note, read: Read) -> None:
        self._path = Path(path)
        self._group = group
        self._ask = ask
        self._note = note
        self._read = read
        self._gid: int | None = None
        self._inode = 0
        self._server = HttpServer(self._handle, LIMITS)

    async def open(self) -> None:
        """Make the socket and serve. Raises ControlError; a socket left behind by a crash is replaced."""
        self._gid = group_id(self._group)
        sock = bound(self._path, self._gid)
        self._inode = self._path.stat().st_ino
        await self._server.listen_unix(sock)

    async def close(self) -> None:
        """Hang up on everybody and remove the socket, unless it is another's by now."""
        await self._server.close()
        try:
            if self._inode and self._path.lstat().st_ino == self._inode:
                self._path.unlink()
        except FileNotFoundError:
            return  # asyncio of Python 3.13 removes it, too

    async def _handle(self, request: HttpRequest) -> HttpAnswer:
        assert request.peer is not None, "commands come on a unix socket only"
        if not self._may(request.peer):
            return _refusal(403, f"cannot take commands from user id {request.peer.uid}: {self._who()}")
        try:
            command = command_of(request.target, request.body)
        except InvalidCommand as error:
            return _refusal(400, f"cannot do this: {error}")
        if command is None and request.method in READING:
            return await self._read(request)
        if command is None:
            return _refusal(404, "cannot do this: no such command")
        if request.method != "POST":
            return _refusal(405, f"cannot {command.verb} by {request.method}: use POST", ("Allow", "POST"))
        try:
            reply = await self._ask(command)
        except asyncio.CancelledError:
            self._note(command, UNHEARD, request.peer)
            raise
        self._note(command, reply, request.peer)
        return HttpAnswer(STATUSES[reply.outcome], body_of(reply), (JSON,))

    def _may(self, peer: Peer) -> bool:
        if peer.uid in (ROOT, os.geteuid()):
            return True
        return self._gid is not None and self._gid in (peer.gid, *peer.groups)

    def _who(self) -> str:
        members = "" if self._group is None else f" and the members of group {self._group}"
        return f"only root, user id {os.geteuid()}{members} may give them"


async def serve(
    settings: ControlSettings, ask: Ask, note: Note, read: Read, warn: Callable[[str], None]
) -> Control | None:
    """The control socket of these settings, open.

    None where nobody has said where it is to be and this user cannot have it at the default place:
    who tries the daemon out is told by ``warn``, and it runs without. Raises ControlError.
    """
    control = Control(settings.path, settings.group, ask, note, read)
    try:
        await control.open()
    except ControlError as error:
        if settings.configured or not error.no_place:
            raise
        warn(f"{error}; commands will not reach this daemon")
        return None
    return control


def _refusal(status: int, error: str, *headers: tuple[str, str]) -> HttpAnswer:
    return HttpAnswer(status, error_body(error), (JSON, *headers))
