"""A query to Consul's DNS server over UDP: which addresses does it name?"""

import socket
import struct
from ipaddress import ip_address

from tests.support.patience import PATIENCE_S

TYPES = {1: 4, 28: 16}  # A and AAAA, and the bytes of their addresses


def addresses(port: int, name: str, kind: int = 1) -> list[str]:
    """Return the addresses of this name, sorted. ``kind``: the type of record, one of TYPES."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    asked = struct.pack(">6H", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", kind, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(PATIENCE_S)
        client.connect(("127.0.0.1", port))
        client.send(asked)
        answer = client.recv(65535)
    (count,) = struct.unpack(">H", answer[6:8])
    at, found = len(asked), []
    for _ in range(count):
        at += 2  # a pointer to the name
        found_kind, _, _, size = struct.unpack(">2HIH", answer[at : at + 10])
        at += 10
        if found_kind == kind:
            found.append(str(ip_address(answer[at : at + TYPES[kind]])))
        at += size
    return sorted(found)
