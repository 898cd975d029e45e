"""The datagrams that systemd gets, as in sd_notify(3). Nothing here waits."""

import socket
from collections.abc import Mapping
from contextlib import suppress


def send(address: str, text: str) -> None:
    """Send this text to systemd. Raises OSError or ValueError."""
    if address.startswith("@"):  # an abstract socket
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
        datagrams.setblocking(False)
        datagrams.sendto(text.encode(), address)


def still_starting(environ: Mapping[str, str], for_s: float) -> None:
    """Have systemd wait so long for this start, which may be slow because a file system or a disk is.

    A start that stands still is killed.
    """
    if address := environ.get("NOTIFY_SOCKET", ""):
        with suppress(OSError, ValueError):  # the log reports it once the daemon runs
            send(address, f"EXTEND_TIMEOUT_USEC={for_s * 1e6:.0f}\n")
