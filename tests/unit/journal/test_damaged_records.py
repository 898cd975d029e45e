"""A damaged record never counts as no record: the next start runs on_lose before anything else.

A real journal is written as a holder writes it, and then cut, zeroed or spoilt at every place.
"""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor.adapters.hooks.abandoned import Group
from supervisor.adapters.journal import Journal, MachineIdentity, Recorded, UnreadableRecord
from supervisor.adapters.journal.format import read
from supervisor.config import ConsulSettings
from supervisor.core.actions import Point, Reason, Record, WriteRecord
from supervisor.core.contender.state import Contender
from supervisor.core.machines.tenure import Phase
from supervisor.core.settings import Wanted
from supervisor.daemon.restore import ProcessIdentity, restore
from tests.unit.core.play import contender

HERE = MachineIdentity("machine", "host", "boot")
SETTINGS = contender()
SESSION = Record(Point.SESSION, SETTINGS.key, "s")
TENURE = Record(Point.TENURE, SETTINGS.key, "s", 7, 3, 1, 12.5)
HOLDING = replace(TENURE, step=Point.HOLDING)
LOSING = replace(HOLDING, step=Point.LOSING, reason=Reason.SHUTDOWN)
STEPS = (SESSION, TENURE, HOLDING, replace(HOLDING, contact=13.5), LOSING)


def journal_of(folder: Path, steps: tuple[Record, ...]) -> bytes:
    """Return the bytes of the file after these steps of one item."""
    journal = Journal(str(folder), ConsulSettings("http://c"), identity=HERE)
    for record in steps:
        assert not journal.write(WriteRecord(SETTINGS.name, record, SETTINGS))
        if record is TENURE:
            assert not journal.group_began(SETTINGS.name, Group(12, 345, "s-acquire"))
    journal.close()
    return (folder / f"{SETTINGS.name}.journal").read_bytes()


def begun(content: bytes) -> Contender:
    """Return the contender with which a process starts from this record."""
    found: Recorded | UnreadableRecord
    try:
        found = read(content)
    except UnreadableRecord as unreadable:
        found = unreadable
    origin = ProcessIdentity("instance", HERE, 20.0)
    (item,) = restore([Wanted(SETTINGS, 0.5)], {SETTINGS.name: found}, origin).contenders
    return item


def is_wound_up(content: bytes) -> bool:
    """Return whether on_lose comes before everything else."""
    tenure = begun(content).tenure
    return tenure is not None and tenure.phase is Phase.LOSING


@pytest.fixture
def content(tmp_path: Path) -> bytes:
    """Return the file after a whole tenure; without its newer lines it is the file of an earlier state."""
    return journal_of(tmp_path, STEPS)


def test_a_record_that_is_cut_anywhere_in_its_lines_means_on_lose(content: bytes) -> None:
    lines = content.rstrip(b" ")
    ends = [at + 1 for at in range(len(lines)) if lines[at : at + 1] == b"\n"]
    places = {0, *range(0, len(lines), 11), *(end + off for end in ends for off in (-1, 0, 1))}
    forgotten = [at for at in sorted(places) if at <= len(lines) and not is_wound_up(content[:at])]
    assert forgotten == []


def test_a_record_whose_end_is_zeroes_means_on_lose(content: bytes) -> None:
    """Zeroes in the reserve count as well, because a loss of power may have taken newer lines."""
    places = [*range(0, len(content.rstrip(b" ")), 23), *range(0, len(content), 997)]
    forgotten = [at for at in places if not is_wound_up(content[:at] + b"\0" * (len(content) - at))]
    assert forgotten == []


def test_a_cut_in_the_reserve_behind_the_lines_loses_nothing(tmp_path: Path) -> None:
    content = journal_of(tmp_path, STEPS[:4])
    lines = len(content.rstrip(b" "))
    whole = begun(content).tenure
    assert whole is not None
    assert all(begun(content[:at]).tenure == whole for at in range(lines + 1, len(content), 997))


@pytest.mark.parametrize("seed", range(40))
def test_random_damage_means_on_lose_or_changes_nothing(tmp_path: Path, seed: int) -> None:
    """The damage is zeroes, noise or a hole, and it has no effect only in an older line."""
    dice = random.Random(seed)
    content = journal_of(tmp_path, STEPS[:4])
    at = dice.randrange(len(content.rstrip(b" ")))
    length = dice.randrange(1, 600)
    kinds = (b"\0" * length, dice.randbytes(length), b"")
    damaged = content[:at] + dice.choice(kinds) + content[at + length :]
    assert is_wound_up(damaged) or begun(damaged).tenure == begun(content).tenure


def test_a_cut_record_of_a_session_without_a_tenure_means_on_lose(tmp_path: Path) -> None:
    """The cut may have taken the tenure that followed."""
    content = journal_of(tmp_path, (SESSION,))
    assert all(is_wound_up(content[:at]) for at in range(0, len(content.rstrip(b" ")) + 1, 3))
    assert is_wound_up(content.rstrip(b" "))


def test_a_pause_survives_a_cut_of_the_next_line(tmp_path: Path) -> None:
    paused = replace(HOLDING, paused=True)
    content = journal_of(tmp_path, (SESSION, TENURE, paused, replace(paused, contact=13.5)))
    item = begun(content.rstrip(b" ")[:-20])
    assert item.paused and item.tenure is not None and item.tenure.phase is Phase.LOSING


def test_a_first_record_without_room_leaves_no_empty_record_behind(tmp_path: Path) -> None:
    """An empty record would mean on_lose at the next start, although nothing had begun."""
    journal = Journal(str(tmp_path), ConsulSettings("http://c"), identity=HERE)
    (tmp_path / f"{SETTINGS.name}.new").symlink_to("/dev/full")  # ENOSPC with every write
    assert "No space left" in journal.write(WriteRecord(SETTINGS.name, SESSION, SETTINGS))
    journal.close()
    assert not (tmp_path / f"{SETTINGS.name}.journal").exists()


def test_a_damaged_record_stays_damaged_until_the_next_one_is_whole(tmp_path: Path) -> None:
    """After a crash in between, the older line alone would make the next start adopt the tenure."""
    content = journal_of(tmp_path, STEPS[:4])
    path = tmp_path / f"{SETTINGS.name}.journal"
    path.write_bytes(content.rstrip(b" ")[:-20])
    journal = Journal(str(tmp_path), ConsulSettings("http://c"), identity=HERE)
    assert isinstance(dict(journal.recorded())[SETTINGS.name], UnreadableRecord)
    (tmp_path / f"{SETTINGS.name}.new").symlink_to("/dev/full")
    assert "No space left" in journal.write(WriteRecord(SETTINGS.name, LOSING, SETTINGS))
    journal.close()
    assert is_wound_up(path.read_bytes())
