"""A network for machines that needs no root: each frame that one of them sends reaches all others."""

import socket
import threading
from typing import Self

FRAME_BYTES_MAX = 65_536


class Lan:
    """A network, until ``close``; qemu sends each frame of a machine as a datagram of UDP."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._ports: tuple[int, ...] = ()
        self._carrier = threading.Thread(target=self._carry, daemon=True)
        self._carrier.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.sendto(b"", self._socket.getsockname())
        self._carrier.join()
        self._socket.close()

    def arguments(self, number: int, port: int) -> list[str]:
        """Return the arguments of qemu for a machine of this number, which takes its frames at this port."""
        self._ports += (port,)
        ours = f"udp=127.0.0.1:{self._socket.getsockname()[1]},localaddr=127.0.0.1:{port}"
        device = f"e1000,netdev=lan,mac=52:54:00:00:00:{number:02x},romfile="
        return ["-netdev", f"socket,id=lan,{ours}", "-device", device]

    def _carry(self) -> None:
        while True:
            frame, (_, sender) = self._socket.recvfrom(FRAME_BYTES_MAX)
            if not frame:
                return
            for port in self._ports:
                if port != sender:
                    self._socket.sendto(frame, ("127.0.0.1", port))
