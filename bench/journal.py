"""Row: how long one record of the journal takes; a hand-over waits for one on each side."""

import time
from dataclasses import replace
from pathlib import Path
from statistics import median

from bench.figures import Figure
from bench.lab import Lab
from supervisor.config import ConsulSettings
from supervisor.core.actions import Point, Record, WriteRecord
from supervisor.core.settings import Command, ElectionSettings, Hook, SessionSettings
from supervisor.journal import Journal

ROW = "journal"
COUNT, COUNT_QUICK = 2000, 200
HOOK = Hook("hook", Command(("/usr/local/sbin/promote", "--fence")), 5.0)
SETTINGS = ElectionSettings(
    "app", "service/app/leader", b"{}", SessionSettings("app"), on_acquire=(HOOK,), on_lose=(HOOK,)
)
SESSION = Record(Point.SESSION, SETTINGS.key, "8c2a4a2e-6c1e-4a41-9a3e-0d6f3d0c9a10")


def measure(lab: Lab) -> list[Figure]:
    """Measure the time of each write, in which the loop does nothing else."""
    lab.say("journal")
    with lab.rig() as rig:
        journal = Journal(str(Path(rig.folder) / "state"), ConsulSettings("http://127.0.0.1:8500"))
        won, lost = [], []
        for number in range(lab.samples(COUNT, COUNT_QUICK)):
            tenure = replace(SESSION, step=Point.TENURE, token=number, contact=float(number))
            _write_us(journal, SESSION)
            won.append(_write_us(journal, tenure))
            _write_us(journal, replace(tenure, step=Point.LOSING))
            lost.append(_write_us(journal, SESSION))
        journal.close()
    return [
        Figure(ROW, "won: the record before on_acquire", median(won), "µs"),
        Figure(ROW, "lost: the record before the release", median(lost), "µs"),
    ]


def _write_us(journal: Journal, record: Record) -> float:
    began_s = time.perf_counter()
    why_not = journal.write(WriteRecord(SETTINGS.name, record, SETTINGS))
    took_us = (time.perf_counter() - began_s) * 1e6
    if why_not:
        raise RuntimeError(why_not)
    return took_us
