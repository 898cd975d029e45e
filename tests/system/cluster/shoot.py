"""The fence of a cluster: it kills the supervisor of a node, and all that it has started.

python -m tests.system.cluster.shoot FOLDER NODE
"""

import sys
from contextlib import suppress
from pathlib import Path

import psutil

from supervisor.adapters.runtime.clock import boottime
from tests.support.tenures import KILLED, SHOT, told_line
from tests.system.cluster.election import boots


def main(folder: Path, node: str) -> None:
    """Kill the supervisor of this node and its hooks, and note that for the judge."""
    mark = f"{folder}/{node}-supervisor/"
    found = [
        process
        for process in psutil.process_iter(["cmdline"])
        if mark in " ".join(process.info["cmdline"] or ())
    ]
    for process in found:
        with suppress(psutil.NoSuchProcess):
            found += process.children(recursive=True)
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(found, timeout=5.0)
    place = folder / f"{node}-supervisor"
    with (folder / "shots").open("a") as file:
        file.write(f"{node} {(place / 'boot').read_text()}")
    boots(place)
    with (folder / "records").open("a") as file:
        for what in (KILLED, SHOT):
            file.write(told_line(what, node, boottime()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
