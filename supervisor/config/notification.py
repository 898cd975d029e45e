"""What systemd tells of the unit, and the datagrams that it gets, as in sd_notify(3). Nothing here waits."""

import socket
from collections.abc import Mapping

UNIT_WATCHDOG_S = 10.0  # WatchdogSec of the unit that is shipped
# TimeoutStartSec is RestartSec shorter. A sign of life in the first second of a start must not move its end,
# so that a start which stands still then costs no more than one without any sign.
FIRST_SIGNS_S = 2.0


def send(address: str, text: str) -> None:
    """Send this text to systemd. Raises OSError or ValueError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
        datagrams.setblocking(False)
        datagrams.sendto(text.encode(), _path(address))


def _path(address: str) -> str:
    """Return the address for the socket call, with a zero in place of the @ of an abstract socket."""
    return "\0" + address[1:] if address.startswith("@") else address


def unit_watchdog_s(environ: Mapping[str, str]) -> float:
    """Return WatchdogSec by systemd's variable WATCHDOG_USEC, else as in the unit that is shipped."""
    return seconds_of("WATCHDOG_USEC", environ) or UNIT_WATCHDOG_S


def may_stand_still_s(environ: Mapping[str, str]) -> float:
    """Return for how long systemd is to wait for the next sign of life of a start."""
    return unit_watchdog_s(environ) - FIRST_SIGNS_S


def seconds_of(name: str, environ: Mapping[str, str]) -> float:
    """Return the seconds of a variable that has microseconds. 0: it has none."""
    given = environ.get(name, "")
    return (int(given) if given.isascii() and given.isdigit() else 0) / 1e6


def still_starting(environ: Mapping[str, str]) -> None:
    """Have systemd wait for this start, which may be slow because a file system or a disk is.

    A start that stands still is killed.
    """
    if address := environ.get("NOTIFY_SOCKET", ""):
        try:
            send(address, f"EXTEND_TIMEOUT_USEC={may_stand_still_s(environ) * 1e6:.0f}\n")
        except (OSError, ValueError):
            pass  # the log reports it once the daemon runs
