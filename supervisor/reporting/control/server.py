"""The daemon's end of the control socket: which users may use it, which command a request is, and the reply.

A user who may give commands can also read on this socket all that the daemon serves over HTTP. The reply to a
command is sent when the command is done, which may take minutes. The daemon must never wait for a client. The
limits are small, because a command is short and its client is on this machine.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from supervisor.config import ControlSettings
from supervisor.reporting.control.listener import ControlError, bound, group_id, make_link, remove_link
from supervisor.reporting.control.protocol import (
    InvalidCommand,
    OperatorCommand,
    Reply,
    Result,
    body_of,
    command_of,
)
from supervisor.reporting.http_server import HttpAnswer, HttpRequest, HttpServer, Limits, Peer
from supervisor.reporting.http_server.messages import JSON, refusal

LIMITS = Limits(
    clients_max=32,  # people and their scripts
    slow_readers_max=16,
    head_bytes_max=8192,
    body_bytes_max=4096,
    receive_s=5.0,
    send_s=5.0,
    idle_s=10.0,
)
DISCONNECTED = Reply(Result.IMPOSSIBLE, "the client disconnected before the reply; the command continues")
ROOT = 0
READING = ("GET", "HEAD", "OPTIONS")

Execute = Callable[[OperatorCommand], Awaitable[Reply]]
Note = Callable[[OperatorCommand, Reply | None, Peer], None]
Read = Callable[[HttpRequest], Awaitable[HttpAnswer]]


class Control:
    """The control socket of one daemon, independent of what the daemon is."""

    def __init__(
        self, settings: ControlSettings, execute: Execute, note: Note, read: Read, warn: Callable[[str], None]
    ) -> None:
        self._settings, self._path = settings, Path(settings.path)
        self._link = Path(settings.link)
        self._execute = execute  # carries out a command, or refuses it
        self._note = note  # called, for the log, when a command arrives (without a reply) and with its reply
        self._read = read  # answers a request that is not a command and changes nothing (GET, HEAD, OPTIONS)
        self._warn = warn
        self._gid: int | None = None
        self._inode = 0
        self._server = HttpServer(self._handle, LIMITS)

    async def open(self) -> None:
        """Make the socket and serve. A socket that a crash has left is replaced. Raises ControlError.

        Where this user may not make the default socket, warn instead, so that the daemon can be tried out.
        """
        self._gid = group_id(self._settings.group)
        try:
            sock = bound(self._path, self._gid, replaces_link=self._path == self._link)
        except ControlError as error:
            if self._settings.configured or not error.no_place:
                raise
            self._warn(f"{error}; commands will not reach this daemon")
            return
        self._inode = self._path.stat().st_ino
        await self._server.listen_unix(sock)
        if self._settings.link:
            make_link(self._link, self._path)

    async def close(self) -> None:
        """Close all connections, and remove the socket and its link, unless another process replaced them."""
        with suppress(FileNotFoundError):
            if self._inode and self._path.lstat().st_ino == self._inode:
                remove_link(self._link, self._path)
                self._path.unlink()
        await self._server.close()

    async def _handle(self, request: HttpRequest) -> HttpAnswer:
        assert request.peer is not None, "commands come on a unix socket only"
        if not self._may(request.peer):
            return refusal(403, f"cannot take commands from user id {request.peer.uid}: {self._who()}")
        try:
            command = command_of(request.target, request.body)
        except InvalidCommand as error:
            return refusal(400, f"cannot do this: {error}")
        if command is None and request.method in READING:
            return await self._read(request)
        if command is None:
            return refusal(404, "cannot do this: no such command")
        if request.method != "POST":
            return refusal(405, f"cannot {command.verb} by {request.method}: use POST", ("Allow", "POST"))
        self._note(command, None, request.peer)
        try:
            reply = await self._execute(command)
        except asyncio.CancelledError:
            self._note(command, DISCONNECTED, request.peer)
            raise
        self._note(command, reply, request.peer)
        return HttpAnswer(reply.outcome, body_of(reply), (JSON,))

    def _may(self, peer: Peer) -> bool:
        if peer.uid in (ROOT, os.geteuid()):
            return True
        return self._gid is not None and self._gid in (peer.gid, *peer.groups)

    def _who(self) -> str:
        group = self._settings.group
        members = "" if group is None else f" and the members of group {group}"
        return f"only root, user id {os.geteuid()}{members} may give them"
