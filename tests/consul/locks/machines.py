"""A machine that runs ``lock --every``: a boot id of its own, which hides the kernel's, and a wall clock.

libfaketime moves the wall clock. CLOCK_BOOTTIME is that of the real machine, as it is on each.
"""

import os
from pathlib import Path

from tests.consul.locks.lockers import Locker, Lockers

FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
EVERY_S = 4.0
NAMESPACE = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--mount", "--map-root-user")
OTHER_BOOT = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'


def run_on(
    lockers: Lockers, name: str, *options: str, off_s: int = 0, every_s: float = EVERY_S, body: str = ":"
) -> Locker:
    """Start ``lock --every`` on the machine of this name, whose clock is off by this much."""
    boot_id = lockers.records.parent / f"boot-{name}"
    boot_id.write_text(f"boot-of-{name}\n")
    assert not off_s or FAKETIME is not None, "tests/setup/get_programs.sh installs libfaketime"
    environ = {"LD_PRELOAD": str(FAKETIME), "FAKETIME": f"{off_s:+d}s"} if off_s else {}
    every = ("--every", f"{every_s:g}s", "--wait", "20s", "--verbose")
    before = (*NAMESPACE, "sh", "-c", OTHER_BOOT, str(boot_id))
    return lockers.start(
        *every, *options, name=name, body=body, before=before, environ={**environ, "DONT_FAKE_MONOTONIC": "1"}
    )
