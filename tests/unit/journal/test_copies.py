"""Records in memory with copies on disk: which one counts, after a crash at any moment."""

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor.adapters import journal
from supervisor.adapters.journal import Journal, JournalError, Recorded, UnreadableRecord
from supervisor.adapters.journal.copies import (
    ACCEPTED,
    COMPLETE,
    EVENTS,
    Copies,
    JournalBusy,
    folder_of,
    locked,
)
from supervisor.core.actions import EMPTY_RECORD, Point, Record, WriteRecord
from tests.support.hung import frozen, hung, local_disk, needs_root
from tests.support.patience import PATIENCE_S
from tests.unit.journal.test_journal import CONSUL, HERE, RECORD, SETTINGS, make_link, make_pipe

LOSING = replace(RECORD, step=Point.LOSING)
LATER = 10**9  # nanoseconds


class Node:
    """A machine with a folder in memory and a disk, on which one process after the other runs."""

    def __init__(self, folder: Path) -> None:
        self.disk, self.run = folder / "state", folder / "run"
        self.memory = folder_of(str(self.run), str(self.disk))
        self.record, self.copy = self.memory / "app.journal", self.disk / "app.journal"
        self.reported: list[str] = []
        self.wanted: list[str] = []
        self._open: list[Journal] = []

    def start(self, runtime: str | None = None) -> Journal:
        runtime = str(self.run) if runtime is None else runtime
        folder = folder_of(runtime, str(self.disk))
        begun = Journal(str(self.disk), CONSUL, identity=HERE, folder=folder, wants_copy=self.wanted.append)
        self._open.append(begun)
        return begun

    def start_former_release(self) -> Journal:
        """Start a process that knows the disk alone."""
        return self.start("")

    def crash(self) -> None:
        while self._open:
            self._open.pop().close()

    def boot(self) -> None:
        self.crash()
        shutil.rmtree(self.run)

    def starts_with(self, record: Record) -> None:
        """Start a process that writes this record."""
        self.start()
        self.write(record)

    def write(self, record: Record) -> None:
        assert self._open[-1].write(WriteRecord("app", record, SETTINGS)) == ""

    def found(self) -> Record | None:
        """Return the record that the next process finds; None for no record."""
        self.crash()
        found = dict(self.start().recorded()).get("app")
        self.crash()
        if isinstance(found, UnreadableRecord):
            raise found
        return None if found is None else found.state

    def copies(self) -> Copies:
        return Copies(self.memory, str(self.disk), self.reported.append)

    def copied(self) -> None:
        """Let the child copy what has changed, to its end."""

        async def made() -> None:
            copies, reports = self.copies(), len(self.reported)
            for name in self.wanted:
                copies.want(name)
            while self.wanted and len(self.reported) == reports:
                await asyncio.sleep(0.01)

        asyncio.run(made())
        self.wanted.clear()

    def finish(self) -> None:
        asyncio.run(self.copies().finish())


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """Return a machine that waits for a slow disk as long as a test does."""
    for name in ("GOES_ON_S", "START_WITHIN_S"):
        monkeypatch.setattr(journal, name, PATIENCE_S)
    monkeypatch.setattr("supervisor.adapters.journal.copies.END_WITHIN_S", PATIENCE_S)
    node = Node(tmp_path)
    yield node
    node.crash()


@pytest.fixture
def waits_briefly(monkeypatch: pytest.MonkeyPatch, node: Node) -> Iterator[None]:
    """Let a start whose records are in memory, and a stop, wait briefly; a longer wait fails the test."""
    monkeypatch.setattr(journal, "GOES_ON_S", 0.25)
    monkeypatch.setattr("supervisor.adapters.journal.copies.END_WITHIN_S", 0.5)
    began_at = time.monotonic()
    yield
    assert time.monotonic() - began_at < PATIENCE_S


def test_a_record_survives_a_crash_before_it_is_copied(node: Node) -> None:
    node.starts_with(RECORD)
    assert not node.copy.exists() and node.found() == RECORD


def test_a_copy_is_what_is_left_after_a_boot(node: Node) -> None:
    node.starts_with(RECORD)
    node.copied()
    node.write(LOSING)
    node.boot()
    assert node.found() == RECORD
    assert node.copy.stat().st_mode & 0o777 == node.record.stat().st_mode & 0o777 == 0o600
    assert node.memory.stat().st_mode & 0o777 == node.disk.stat().st_mode & 0o777 == 0o700


def test_a_copy_never_counts_beside_a_newer_record(node: Node) -> None:
    node.starts_with(RECORD)
    node.copied()
    node.write(LOSING)
    assert node.found() == LOSING


def test_a_copy_of_a_record_that_is_gone_never_counts_and_is_removed(node: Node) -> None:
    node.starts_with(RECORD)
    node.copied()
    os.utime(node.memory / COMPLETE, ns=(0, 0))  # the start was long ago
    node.write(EMPTY_RECORD)
    assert node.copy.exists() and node.found() is None
    assert not node.copy.exists()


def test_a_record_that_is_gone_has_no_copy(node: Node) -> None:
    node.starts_with(RECORD)
    node.copied()
    node.write(EMPTY_RECORD)
    node.copied()
    assert node.reported == ["", ""] and not node.copy.exists()
    node.boot()
    assert node.found() is None


def test_the_end_of_the_last_process_group_of_an_item_at_rest_removes_the_copy(node: Node) -> None:
    from supervisor.adapters.hooks.abandoned import Group

    journal, group = node.start(), Group(12, 345, "s-lose")
    node.write(RECORD)
    journal.group_began("app", group)
    node.write(EMPTY_RECORD)
    node.copied()
    assert node.copy.exists()
    journal.group_ended("app", group)
    journal.settle("app")
    node.copied()
    assert not node.copy.exists()


@pytest.mark.parametrize("before", [RECORD, EMPTY_RECORD])
def test_what_a_former_release_has_written_meanwhile_counts(node: Node, before: Record) -> None:
    node.starts_with(RECORD)
    node.copied()
    node.write(before)
    node.copied()
    node.crash()
    node.start_former_release()
    node.write(LOSING)
    os.utime(node.copy, ns=(0, time.time_ns() + LATER))  # some time has passed
    assert node.found() == LOSING


def test_a_former_release_finds_every_record_after_an_orderly_stop(node: Node) -> None:
    node.starts_with(replace(RECORD, step=Point.STUCK, contact=1.0))
    node.copied()
    node.write(replace(RECORD, step=Point.STUCK, contact=2.0))  # no reason for a copy of its own
    node.finish()
    node.crash()
    assert not node.memory.exists()
    ((_, found),) = node.start_former_release().recorded()
    assert isinstance(found, Recorded) and found.state.contact == 2.0


def test_what_an_operator_removes_from_state_dir_after_an_orderly_stop_is_gone(node: Node) -> None:
    node.starts_with(RECORD)
    node.finish()
    node.crash()
    node.copy.unlink()
    assert node.found() is None


def test_the_stop_is_complete_before_a_record_is_removed(node: Node) -> None:
    """A crash between the two leaves records that are no newer than their copies."""
    node.starts_with(RECORD)
    node.finish()
    node.crash()
    node.memory.mkdir()  # as if the crash had come in the midst of the removal
    assert node.found() == RECORD


def test_a_start_that_ended_in_the_midst_of_taking_over_is_repeated(node: Node) -> None:
    node.start_former_release()
    node.write(RECORD)
    node.crash()
    node.memory.mkdir(parents=True)
    (node.memory / "app.new").write_bytes(b"half")
    assert node.found() == RECORD


@pytest.mark.parametrize("make", [make_pipe, make_link, Path.mkdir, lambda path: path.write_bytes(b"\0")])
def test_a_damaged_copy_is_damage(node: Node, make: Callable[[Path], None]) -> None:
    node.disk.mkdir()
    make(node.copy)
    with pytest.raises(UnreadableRecord):
        node.found()
    assert (node.memory / COMPLETE).exists()


def test_the_events_are_copied_with_each_record(node: Node) -> None:
    node.starts_with(RECORD)
    for name in EVENTS:
        (node.memory / name).write_text(name)
    node.copied()
    assert [(node.disk / name).read_text() for name in EVENTS] == [*EVENTS]
    node.boot()
    node.start()
    assert [(node.memory / name).read_text() for name in EVENTS] == [*EVENTS]


def test_a_copy_that_cannot_be_made_is_reported_and_tried_again(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor.adapters.journal.copies.RETRY_S", 0.1)
    node.starts_with(RECORD)
    obstacle = node.disk / "copy"
    obstacle.touch()

    async def made() -> None:
        node.copies().want("app.journal")
        while "" not in node.reported:
            await asyncio.sleep(0.01)
            if node.reported:
                assert f"cannot copy the records to {node.disk}: " in node.reported[0]
                if obstacle.is_file():
                    obstacle.unlink()

    asyncio.run(asyncio.wait_for(made(), PATIENCE_S))
    assert node.copy.exists()


def test_without_a_folder_in_memory_the_records_are_in_state_dir(node: Node) -> None:
    node.start_former_release()
    node.write(RECORD)
    assert folder_of("", str(node.disk)) == node.disk
    copies = Copies(node.disk, str(node.disk), node.reported.append)

    async def sync() -> None:
        copies.want("app.journal")
        copies.want("gone.journal")
        while not node.reported:
            await asyncio.sleep(0.01)
        await copies.finish()

    asyncio.run(sync())
    assert node.reported == [""] and node.copy.exists()


def test_two_processes_never_share_a_state_dir_whatever_their_folders_in_memory(
    node: Node, tmp_path: Path
) -> None:
    node.start()
    for runtime in (str(node.run), str(tmp_path / "other"), ""):
        with pytest.raises(JournalBusy, match="another consul-supervisor"):
            node.start(runtime)


def test_a_record_that_a_former_release_has_ended_is_gone_and_a_wiped_disk_ends_none(node: Node) -> None:
    node.starts_with(RECORD)
    (node.memory / "events").touch()
    node.copied()
    node.crash()
    wiped = {path.name: path.read_bytes() for path in node.disk.iterdir() if path.is_file()}
    for name in wiped:
        (node.disk / name).unlink()
    assert node.found() == RECORD
    for name, content in wiped.items():
        (node.disk / name).write_bytes(content)
    node.start_former_release()
    node.write(EMPTY_RECORD)
    (node.disk / "events").write_text("it has ended")
    assert not node.copy.exists() and node.found() is None


def test_a_record_without_a_copy_survives_a_former_release(node: Node) -> None:
    node.starts_with(RECORD)
    node.crash()
    node.start_former_release()
    (node.disk / "events").write_text("it has run")
    assert node.found() == RECORD


async def test_what_cannot_be_written_leaves_nothing_outdated_and_is_written_later(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor.adapters.journal.copies.RETRY_S", 0.1)
    node.start()
    copies, obstacle = node.copies(), node.memory / f"{ACCEPTED}.new"
    copies.put(ACCEPTED, b"first")
    assert await copies.made() == "" and (node.disk / ACCEPTED).read_bytes() == b"first"
    obstacle.mkdir()
    copies.put(ACCEPTED, b"second")
    assert f"cannot write {node.memory / ACCEPTED}: " in await copies.made()
    assert (node.memory / ACCEPTED).read_bytes() == (node.disk / ACCEPTED).read_bytes() == b""
    obstacle.rmdir()
    assert await copies.made() == "" and (node.disk / ACCEPTED).read_bytes() == b"second"


def test_records_of_another_state_dir_are_left_alone(node: Node, tmp_path: Path) -> None:
    node.starts_with(RECORD)
    disk = str(tmp_path / "other")
    other = Journal(disk, CONSUL, identity=HERE, folder=folder_of(str(node.run), disk))
    assert not list(other.recorded())
    other.close()


def test_a_disk_that_cannot_be_used_keeps_no_start_from_the_records_in_memory(node: Node) -> None:
    node.starts_with(RECORD)
    node.crash()
    shutil.rmtree(node.disk)
    node.disk.touch()
    assert node.found() == RECORD
    shutil.rmtree(node.run)
    with pytest.raises(JournalError, match="set state_dir to"):
        node.start()


@needs_root
@pytest.mark.usefixtures("waits_briefly")
def test_on_a_frozen_disk_a_start_goes_on_by_memory_and_waits_for_nothing(node: Node) -> None:
    node.disk.mkdir()
    with local_disk(node.disk):
        node.starts_with(RECORD)
        node.copied()
        with frozen(node.disk):
            node.write(LOSING)
            assert node.found() == LOSING
            node.start()
            node.finish()
            assert (node.memory / COMPLETE).exists()
        assert node.found() == LOSING
        node.start()
        node.finish()
        assert not node.memory.exists()
        node.crash()


@needs_root
@pytest.mark.usefixtures("waits_briefly")
def test_while_a_disk_does_not_answer_a_start_goes_on_by_the_records_in_memory(node: Node) -> None:
    node.starts_with(RECORD)
    node.copied()
    node.write(LOSING)
    with hung(node.disk):
        assert node.found() == LOSING
        node.start()
        node.finish()
        node.write(RECORD)
    assert node.found() == RECORD


@needs_root
def test_a_first_start_waits_for_a_disk_that_hangs_for_a_bounded_time(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "START_WITHIN_S", 3.0)
    node.start_former_release()
    node.write(RECORD)
    node.crash()
    with (
        hung(node.disk),
        pytest.raises(JournalBusy, match="did not answer within 3 s; it belongs on a disk of this"),
    ):
        node.start()
    assert node.found() == RECORD


def test_a_record_in_memory_is_never_older_than_its_copy(node: Node) -> None:
    """So no start takes a copy of ours for the word of another release."""
    node.starts_with(RECORD)
    for token in range(3):
        node.write(replace(RECORD, token=token))
        node.copied()
        assert node.copy.stat().st_mtime_ns <= node.record.stat().st_mtime_ns


def test_a_clock_that_is_set_back_makes_no_copy_newer_than_its_record(node: Node) -> None:
    """As when the time of the machine is corrected after the boot."""
    ahead_ns = time.time_ns() + 3600 * LATER
    node.start_former_release()
    node.write(RECORD)
    node.crash()
    os.utime(node.copy, ns=(ahead_ns, ahead_ns))
    assert node.found() == RECORD
    for record in (replace(RECORD, contact=9.0), LOSING):
        node.starts_with(record)
        assert node.found() == record
    node.starts_with(EMPTY_RECORD)
    assert node.copy.exists() and node.found() is None
    assert not node.copy.exists()


@needs_root
def test_a_loss_of_power_takes_back_no_copy_and_no_end_of_a_record(node: Node) -> None:
    node.disk.mkdir()
    with local_disk(node.disk):
        node.start()
        for number, record in enumerate((RECORD, LOSING, EMPTY_RECORD)):
            node.write(record)
            node.copied()
            after = node.disk.with_name(f"after{number}")
            after.mkdir()
            shutil.copyfile(node.disk.with_suffix(".image"), after.with_suffix(".image"))
            subprocess.run(["mount", "-o", "loop", after.with_suffix(".image"), after], check=True)
            copies = [path.read_bytes() for path in after.glob("*.journal")]
            subprocess.run(["umount", after], check=True)
            assert copies == [path.read_bytes() for path in node.disk.glob("*.journal")]
        node.crash()


@pytest.mark.parametrize("after_s", [0.055, 0.065, 0.08])
def test_a_record_that_ends_while_it_is_copied_delays_no_other(node: Node, after_s: float) -> None:
    """Many records end together at a stop, and the child finds some of them gone."""
    node.start()
    names = [f"{number}.journal" for number in range(400)]

    async def ends() -> None:
        copies = Copies(node.memory, str(node.disk), node.reported.append)
        for name in names:
            (node.memory / name).write_bytes(b" " * 16_384)
            copies.want(name)
        await asyncio.sleep(after_s)  # the child has begun
        for name in names:
            (node.memory / name).unlink()
            copies.want(name)
        await copies.finish()

    asyncio.run(ends())
    assert not any(node.reported) and not node.memory.exists()


# --- the id of the records ----------------------------------------------------------------------------


def test_the_id_stays_with_the_records_over_a_crash_and_an_orderly_stop(node: Node) -> None:
    known = node.start().id(anew=False)
    node.crash()
    assert node.start().id(anew=False) == known != ""
    node.finish()
    node.crash()
    assert node.start().id(anew=False) == known and not (node.disk / "id").exists()


def test_records_that_come_from_a_copy_get_another_id(node: Node) -> None:
    """A crash that also took the memory away may have taken newer records with it."""
    known = node.start().id(anew=False)
    node.crash()
    shutil.rmtree(node.run)
    begun = node.start()
    other = begun.id(anew=False)
    assert other not in (known, "") and begun.id(anew=True) not in (known, other)


def test_a_copied_folder_and_a_link_have_no_part_in_the_id(node: Node, tmp_path: Path) -> None:
    """A copy does not know the tenures since, and a link could lead to a secret."""
    known = node.start_former_release().id(anew=False)
    shutil.copytree(node.disk, tmp_path / "copy")
    copied = Journal(str(tmp_path / "copy"), CONSUL, identity=HERE)
    assert copied.id(anew=False) != known
    copied.close()
    node.crash()
    assert node.start_former_release().id(anew=False) == known
    (tmp_path / "copy" / "id").unlink()
    (tmp_path / "secret").write_text("a secret")
    (tmp_path / "copy" / "id").symlink_to(tmp_path / "secret")
    linked = Journal(str(tmp_path / "copy"), CONSUL, identity=HERE)
    assert len(linked.id(anew=False)) == 16
    linked.close()


def test_a_folder_that_takes_no_id_has_none(node: Node) -> None:
    begun = node.start()
    (node.memory / "id").mkdir()
    assert begun.id(anew=False) == "" == begun.id(anew=True)


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    """Whoever may write to the folder could have root make or open any file."""
    for target in (tmp_path / "made", Path("/dev/full"), tmp_path / "folder" / "lock"):
        folder = tmp_path / f"state-{target.name}"
        folder.mkdir()
        (folder / "n.journal").touch()
        (folder / "lock").symlink_to(target)
        with pytest.raises(JournalBusy, match="/lock is a link, and what it leads to may be"):
            locked(folder)
    assert not (tmp_path / "made").exists()
