"""A query to Consul's DNS server over UDP: which addresses, or ports, does it name?"""

import socket
import struct
from collections.abc import Iterator
from ipaddress import ip_address

from tests.support.patience import PATIENCE_S

A, AAAA, SRV = 1, 28, 33


def addresses(port: int, name: str, kind: int = A) -> list[str]:
    """Return the addresses of this name, sorted. ``kind``: A or AAAA."""
    return sorted(str(ip_address(data)) for data in _records(port, name, kind))


def ports(port: int, name: str) -> list[int]:
    """Return the ports of the service of this name."""
    return [int.from_bytes(data[4:6]) for data in _records(port, name, SRV)]


def _records(port: int, name: str, kind: int) -> Iterator[bytes]:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    asked = struct.pack(">6H", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", kind, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(PATIENCE_S)
        client.connect(("127.0.0.1", port))
        client.send(asked)
        answer = client.recv(65535)
    (count,) = struct.unpack(">H", answer[6:8])
    at = len(asked)
    for _ in range(count):
        at += 2  # a pointer to the name
        found_kind, _, _, size = struct.unpack(">2HIH", answer[at : at + 10])
        at += 10
        if found_kind == kind:
            yield answer[at : at + size]
        at += size
