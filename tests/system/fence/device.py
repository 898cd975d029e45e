"""A fence device on this host: it switches machines off or resets them, or fails to, as a scene asks."""

import threading
from collections.abc import Callable, Mapping
from enum import Enum, auto
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Self

from supervisor.adapters.runtime.clock import boottime

SLOW_S = 15.0


class Manner(Enum):
    """How the device treats an order."""

    WORKS = auto()
    REBOOTS = auto()  # the machine is reset, and boots
    SLOW = auto()  # the machine is switched off and the order answered after SLOW_S
    FAILS = auto()  # the device says that it cannot
    DEAD = auto()  # no answer ever comes
    LIES = auto()  # the device says that the machine is off, and has done nothing


class Device(ThreadingTCPServer):
    """A device that takes the name of a machine in a line, and says ``off`` when the machine is off.

    switches: what switches each machine off or resets it, by its name.
    asked: all orders so far, each with its time and the name in it.
    """

    daemon_threads = False  # so that a closed device has ended all that it began

    def __init__(self, manner: Manner, switches: Mapping[str, Callable[[], object]]) -> None:
        super().__init__(("127.0.0.1", 0), _Order)
        self.port: int = self.server_address[1]
        self.asked: list[tuple[float, str]] = []
        self.manner = manner
        self._switches = switches
        self._closed = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closed.set()
        self.shutdown()
        self.server_close()

    def obey(self, target: str) -> bytes:
        """Carry out an order, and return the answer."""
        self.asked.append((boottime(), target))
        if self.manner is Manner.DEAD:
            self._closed.wait()
        if self.manner is Manner.SLOW:
            self._closed.wait(SLOW_S)
        if self.manner is Manner.FAILS or self._closed.is_set():
            return b"failed\n"
        if self.manner is Manner.LIES:
            return b"off\n"
        if target not in self._switches:
            return b"failed\n"
        self._switches[target]()
        return b"off\n"


class _Order(StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Device), "it made this handler"
        self.wfile.write(self.server.obey(self.rfile.readline().decode().strip()))
