"""A service behind a virtual address, and its client; each runs on a machine of its own.

python -m tests.system.applications.greeter serve NAME          send this name to every client
python -m tests.system.applications.greeter ask ADDRESS         connect repeatedly, print "SECONDS NAME"
"""

import contextlib
import socket
import sys
import time

PORT = 8080
PATIENCE_S = 0.3
PAUSE_S = 0.02


def serve(name: str) -> None:
    """Serve on every address that the machine has now or will get."""
    with socket.create_server(("0.0.0.0", PORT)) as server:
        while True:
            caller, _ = server.accept()
            with caller, contextlib.suppress(OSError):
                caller.sendall(name.encode())


def ask(address: str) -> None:
    """Print a line for each connection that was answered, by the clock of the whole computer."""
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
