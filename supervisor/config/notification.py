"""What systemd tells of the unit by its variables, as in sd_notify(3)."""

from collections.abc import Mapping

UNIT_WATCHDOG_S = 10.0  # WatchdogSec of the unit that is shipped
# TimeoutStartSec is RestartSec shorter. A sign of life in the first second of a start must not move its end,
# so that a start which stands still then costs no more than one without any sign.
FIRST_SIGNS_S = 2.0


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
