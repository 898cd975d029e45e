"""A room loses its network: six machines that lead are cut off at once, and two others limit their fences.

So many are shot as the limit lets through, and the survivors wait for the leases of the rest.
"""

import json
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from supervisor.adapters.runtime.clock import boottime
from tests.support import tenures
from tests.support.tenures import Tenure
from tests.system.cluster import election, judge
from tests.system.cluster.cluster import Cluster
from tests.system.cluster.program import BROKEN, DONE, say, show_logs, working_folder

SURVIVORS = ("a", "b")
ROOM = ("d", "e", "f", "g", "h", "i")
MACHINES = 2
LIMIT = {"fence_limit": {"machines": MACHINES, "within": "10m"}, "fleet": {}}
LEASE_S = 8.0  # the lock_delay of each election: nobody who waits for it acts sooner after the loss
READ_S = 1.5  # so old the holder's newest contact may be
SPARE_S = 5.0  # in which nothing more may happen


def run(keep: Path | None) -> int:
    """Cut the room off, and say whether two were shot, four waited for, and nobody acted beside another."""
    with working_folder(keep) as folder:
        with Cluster(folder, clients=(*SURVIVORS, *ROOM)) as cluster:
            wrong = list(_complaints(cluster, folder))
        if wrong:
            show_logs(folder)
    say("\n".join(wrong) or "two shot, four waited for, and nobody acted beside another")
    return BROKEN if wrong else DONE


def _complaints(cluster: Cluster, folder: Path) -> Iterator[str]:
    for node in (*ROOM, *SURVIVORS):
        leads = ROOM if node in SURVIVORS else (node,)
        files = {f"of-{each}": _election(node, each, folder) for each in leads}
        cluster.supervise(election.supervisor(cluster, node, files, folder, LIMIT))
        if node in ROOM:
            cluster.until(partial(_acting, folder, node, ROOM), f"{node} leads")
    wanted = len(ROOM) * (1 + len(SURVIVORS))
    cluster.until(lambda: len(cluster.server.session_names()) >= wanted, "all contend")
    cluster.pass_time(2.0)  # in which a survivor reads the records
    lost_at = boottime()
    for node in ROOM:
        cluster.network.unplug(cluster.network.machines[node])
    cluster.until(lambda: len(_shot(folder)) == MACHINES, "the first ones are shot")
    cluster.until(lambda: len(_after(folder)) == MACHINES, "their elections are led elsewhere")
    guarded = (each for each in _status(folder) if each["reason"].startswith("waits for "))
    waits = {each["name"].removeprefix("of-") for each in guarded}
    cluster.until(lambda: len(_after(folder)) == len(ROOM), "all elections are led elsewhere")
    cluster.pass_time(SPARE_S)
    shot, led = _shot(folder), _after(folder)
    for node in ROOM:
        how = "shot" if node in shot else "waited for"
        say(f"{node}: {how}, another acts {led[node].begin.at - lost_at:.1f} s after the loss")
    if len(shot) != MACHINES or len({*shot} & {*ROOM}) != MACHINES:
        yield f"shot: {shot}"
    if waits != {*ROOM} - {*shot}:
        yield f"these were waited for: {sorted(waits)}"
    for node in {*ROOM} - {*shot}:
        if led[node].begin.at - lost_at < LEASE_S - READ_S:
            yield f"another node acted in the place of {node} before its lease was over"
    for node in ROOM:
        for overlap in judge.overlaps(_tenures(folder, node), tenures.read_records(folder / "records"), 0.0):
            yield f"overlap: {overlap}"


def _election(node: str, led_by: str, folder: Path) -> dict[str, Any]:
    settings = election.settings(node, folder / "records", quick=False, fence=True)
    return {**settings, "key": f"service/of-{led_by}/leader"}


def _tenures(folder: Path, node: str) -> list[Tenure]:
    return tenures.tenures(tenures.read_records(folder / "records"), f"of-{node}", 0.0)


def _acting(folder: Path, node: str, by: tuple[str, ...]) -> Tenure | None:
    """Return the tenure of one of these nodes in the election that ``node`` led first. None: none yet."""
    return next((each for each in _tenures(folder, node) if each.node in by), None)


def _after(folder: Path) -> dict[str, Tenure]:
    """Return the first tenure of a survivor, by the node that was lost."""
    return {node: found for node in ROOM if (found := _acting(folder, node, SURVIVORS))}


def _shot(folder: Path) -> list[str]:
    path = folder / "shots"
    return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []


def _status(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the items of the survivors, as `status --json` shows them."""
    for node in SURVIVORS:
        socket = str(folder / f"{node}-supervisor" / "control.sock")
        argv = [election.COMMAND, "status", "--json", "--socket", socket]
        said = subprocess.run(argv, capture_output=True, text=True, check=False)
        yield from json.loads(said.stdout)["items"]
