"""The program of a scripted peer: it listens, and each connection follows its script (see peer.py).

Each test of the transport starts it, so it imports little.
"""

import json
import os
import socket
import struct
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl

TRICKLE_S = 0.01
Step = tuple[str, str]


def main() -> None:
    task = json.loads(sys.stdin.readline())
    listener = listening(task["address"])
    print(listener.getsockname()[1] if listener.family == socket.AF_INET else 0, flush=True)
    threading.Thread(target=serve, args=(listener, task["scripts"], task["tls"]), daemon=True).start()
    sys.stdin.read()  # ends with the test, even if the test crashes
    os._exit(0)


def listening(address: str | list[str | int]) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    listener.bind(address if isinstance(address, str) else tuple(address))
    listener.listen(64)
    return listener


def serve(listener: socket.socket, scripts: list[list[Step]], tls: list[str | None] | None) -> None:
    number = 0
    while True:
        sock, _ = listener.accept()
        script = scripts[min(number, len(scripts) - 1)]
        threading.Thread(target=follow, args=(sock, script, number, tls), daemon=True).start()
        number += 1


def follow(sock: socket.socket, script: list[Step], number: int, tls: list[str | None] | None) -> None:
    try:
        if tls:
            sock = server_context(tls).wrap_socket(sock, server_side=True)
        while any(take(sock, kind, text.encode("latin-1"), number) for kind, text in script):
            pass
    except OSError:
        pass  # the client left
    finally:
        sock.close()


def take(sock: socket.socket, kind: str, data: bytes, number: int) -> bool:
    """Take one step, and return whether to begin the script again."""
    match kind:
        case "read":
            print(f"{number} {read_request(sock)}", flush=True)
        case "send":
            sock.sendall(data)
        case "trickle":
            while True:
                for byte in data:
                    sock.sendall(bytes([byte]))
                    time.sleep(TRICKLE_S)
        case "flood":
            while True:
                sock.sendall(data * max(1, 65536 // len(data)))
        case "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
        case "close":
            sock.close()
        case "hold":
            threading.Event().wait()
    return kind == "again"


def read_request(sock: socket.socket) -> str:
    """Return the request line without its version; OSError when the client left."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += some(sock)
    head, _, body = received.partition(b"\r\n\r\n")
    line, *headers = head.decode("latin-1").split("\r\n")
    fields = {name.lower(): value for name, value in (each.split(": ", 1) for each in headers)}
    left = int(fields.get("content-length", "0")) - len(body)
    while left > 0:
        left -= len(some(sock))
    return line.rpartition(" ")[0]


def some(sock: socket.socket) -> bytes:
    data = sock.recv(65536)
    if not data:
        raise ConnectionError("the client left")
    return data


def server_context(tls: list[str | None]) -> "ssl.SSLContext":
    import ssl

    cert, key, client_ca = tls
    assert cert
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    return context


if __name__ == "__main__":
    main()
