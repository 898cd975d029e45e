"""A service behind a virtual address, and a client of it; each runs on a machine of its own.

python -m tests.system.applications.greeter serve NAME          say this name to everybody who connects
python -m tests.system.applications.greeter ask ADDRESS         connect again and again, print "SECONDS NAME"
"""

import contextlib
import socket
import sys
import time

PORT = 8080
PATIENCE_S = 0.3
PAUSE_S = 0.02


def serve(name: str) -> None:
    """On every address that the machine has, and will have."""
    with socket.create_server(("0.0.0.0", PORT)) as server:
        while True:
            caller, _ = server.accept()
            with caller, contextlib.suppress(OSError):
                caller.sendall(name.encode())


def ask(address: str) -> None:
    """A line for each connection that was answered; the clock is that of the whole computer."""
    while True:
        with contextlib.suppress(OSError):
            answered = _name(address)
            print(f"{time.clock_gettime(time.CLOCK_BOOTTIME):.3f} {answered}", flush=True)
        time.sleep(PAUSE_S)


def _name(address: str) -> str:
    with socket.create_connection((address, PORT), PATIENCE_S) as connection:
        return connection.recv(100).decode()


if __name__ == "__main__":
    {"serve": serve, "ask": ask}[sys.argv[1]](sys.argv[2])
