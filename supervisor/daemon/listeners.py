"""The listeners of the daemon: the control socket and ``http.listen``.

They are opened, moved after a reload, and closed here. A response is made when a client sends a request, and
``daemon.operator`` carries out the commands. Nothing here decides anything, and a TCP listener that cannot be
opened never costs leadership.
"""

import resource
from collections.abc import Awaitable, Callable, Collection

from supervisor.config import Config
from supervisor.daemon.shared import Shared
from supervisor.reporting.control import OperatorCommand, Reply, Result
from supervisor.reporting.control.server import Control, Execute
from supervisor.reporting.control.users import user_name
from supervisor.reporting.http_server import Peer
from supervisor.reporting.telemetry.formatting import when
from supervisor.reporting.telemetry.log import Level
from supervisor.reporting.telemetry.log.recurring import REPEAT_S
from supervisor.reporting.telemetry.metrics import Metrics
from supervisor.reporting.web.listener import LIMITS, Listener
from supervisor.reporting.web.routes import Routes

DESCRIPTORS_BASE = 128
DESCRIPTORS_EACH = 12  # of an item: its exchanges, the pipes of two hooks, its record
CLIENTS_MIN = 8  # over TCP when descriptors are scarce, because the items need the others


def allow_descriptors(items: int, clients: int) -> int:
    """Raise the limit of descriptors, so that all items can run a hook at once beside ``clients`` clients.

    Return the number of TCP clients for which the hard limit leaves room, which is at least CLIENTS_MIN.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ours = DESCRIPTORS_BASE + DESCRIPTORS_EACH * items
    wanted = ours + clients
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(CLIENTS_MIN, wanted - ours)


class Listeners:
    """The listeners of one daemon, and the metrics that they serve."""

    def __init__(
        self, config: Config, shared: Shared, execute: Execute, fleet: Callable[[], Awaitable[bytes]]
    ) -> None:
        """Make the listeners without opening them.

        execute: carries out a command from the control socket.
        fleet: returns the body of ``/v1/fleet``.
        """
        self._config, self._shared, self._log = config, shared, shared.log
        self._crowded_at = -REPEAT_S
        self.metrics = Metrics(shared.status, shared.history)
        self._routes = Routes(shared.status, self.metrics, fleet)
        self._routes.url = config.page
        self._control: Control | None = None
        if config.control is not None:
            self._control = Control(
                config.control, execute, self._log_command, self._routes.answer, self._warn
            )
        self._listener = Listener(self._routes, self._log_http)

    async def open(self) -> None:
        """Open the listeners. Raises ControlError when the control socket cannot be made."""
        if self._control is not None:
            await self._control.open()
        await self.move()

    async def close(self) -> None:
        if self._control is not None:
            await self._control.close()
        await self._listener.close()

    def follow(self, config: Config, items: Collection[str]) -> bool:
        """Use this configuration and these items from now on. Return whether ``move`` must follow."""
        moved = config.http != self._config.http
        self._config, self._routes.url = config, config.page
        self._shared.history.retain(items)
        allow_descriptors(len(items), self._clients)
        return moved

    async def move(self) -> None:
        """Listen over TCP where the configuration in force has it, and make room for the clients."""
        clients = allow_descriptors(len(self._shared.contenders.by_name), self._clients)
        await self._listener.move(self._config.http, clients)

    @property
    def _clients(self) -> int:
        return 0 if self._config.http is None else LIMITS.clients_max

    # --- lines of the log ------------------------------------------------------------------------

    def cannot_accept(self, error: OSError) -> None:
        """Log that a client could not be accepted, once in REPEAT_S: asyncio may report it very often."""
        now = self._shared.clock()
        if now - self._crowded_at >= REPEAT_S:
            self._crowded_at = now
            self._log_http("warning", f"cannot let a client in: {error.strerror}; trying again")

    def _log_command(self, command: OperatorCommand, reply: Reply | None, peer: Peer) -> None:
        """Log that a command has arrived, so that the log shows the cause of its effects, or of its reply."""
        by = {"uid": peer.uid, "user": user_name(peer.uid), "note": command.note}
        lasts = {} if command.pause_s is None else {"until": when(self._shared.wall() + command.pause_s)}
        given = {"verb": command.verb, "to": command.to, **lasts, **by}
        if reply is None:
            self._log.line("info", "command-received", item=command.name, **given)
            return
        level: Level = "info" if reply.outcome is Result.DONE else "warning"
        name = "all" if command.name is None else command.name
        self._log.line(level, "command", item=command.name, name=name, **given, why=reply.error)

    def _log_http(self, level: Level, why: str) -> None:
        self._log.line(level, "http", why=why)

    def _warn(self, why: str) -> None:
        self._log.line("warning", "control-socket", why=why)
