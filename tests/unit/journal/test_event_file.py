"""The file of events: bounded, whole line by line, and harmless whatever happens to the file."""

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from supervisor.adapters.journal.event_file import (
    BATCH_MAX,
    FILE_BYTES_MAX,
    NEWER,
    OLDER,
    EventFile,
    events_of,
    lines_in,
)
from tests.support.supervisor import ROOT, until

MACHINE = "one"


def event(number: int, **fields: Any) -> dict[str, Any]:
    return {"time": "2026-11-22T15:01:07.612Z", "event": "role", "item": "app", "number": number, **fields}


def kept(folder: Path, machine: str = MACHINE) -> list[int]:
    """Return the numbers of the events that a reader finds."""
    return [each["number"] for each in events_of(lines_in(str(folder)), machine) if each is not None]


def file_in(folder: Path, machine: str = MACHINE) -> EventFile:
    return EventFile(str(folder), machine)


def test_what_is_appended_is_read_by_the_next_process(tmp_path: Path) -> None:
    first = file_in(tmp_path)
    assert lines_in(str(tmp_path)) == [b"", b""]
    first.append([event(1), event(2)])
    first.append([event(3)])
    file_in(tmp_path).append([event(4)])
    assert kept(tmp_path) == [1, 2, 3, 4]
    assert stat.S_IMODE((tmp_path / NEWER).stat().st_mode) == 0o600


@pytest.mark.long
def test_a_hundred_thousand_events_stay_within_two_files(tmp_path: Path) -> None:
    file = file_in(tmp_path)
    for first in range(0, 100_000, BATCH_MAX):
        file.append([event(number) for number in range(first, first + BATCH_MAX)])
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {NEWER, OLDER} and max(sizes.values()) <= FILE_BYTES_MAX
    found = kept(tmp_path)
    assert found == list(range(found[0], 100_000)) and len(found) > FILE_BYTES_MAX / 200


def test_the_largest_batch_fits_into_a_file(tmp_path: Path) -> None:
    texts = {name: "\u2028" * 501 for name in ("why", "note", "detail", "hook", "reason")}
    file = file_in(tmp_path)
    for first in range(0, 10 * BATCH_MAX, BATCH_MAX):
        file.append([event(number, **texts) for number in range(first, first + BATCH_MAX)])
        assert (tmp_path / NEWER).stat().st_size <= FILE_BYTES_MAX
    assert kept(tmp_path)[-1] == 10 * BATCH_MAX - 1


@pytest.mark.parametrize("place", ["header", "first", "last"])
def test_a_damaged_line_is_left_out_and_no_other(place: str, tmp_path: Path) -> None:
    file_in(tmp_path).append([event(number) for number in range(5)])
    path = tmp_path / NEWER
    lines = path.read_bytes().splitlines(keepends=True)
    at = {"header": 1, "first": 2, "last": 6}[place]
    lines[at] = lines[at].replace(b'"', b"\0", 1)
    path.write_bytes(b"".join(lines))
    assert kept(tmp_path) == [number for number in range(5) if number + 2 != at]


@pytest.mark.parametrize("cut", [2, 20, 60])
def test_a_line_that_a_loss_of_power_has_cut_harms_no_later_one(cut: int, tmp_path: Path) -> None:
    """Even when the cut line is the one that names the machine, which is another machine here."""
    file_in(tmp_path, "other").append([event(1), event(2)])
    path = tmp_path / NEWER
    os.truncate(path, path.stat().st_size - cut)
    file_in(tmp_path).append([event(3)])
    assert kept(tmp_path) == [3] and kept(tmp_path, "other") == [1]


@pytest.mark.parametrize(
    "content", [b"\0" * 5000, b"[" * 100_000 + b"\n", b"\xff\xfe\n" * 100, b"{}\n[]\n1\n"]
)
def test_any_content_is_survived(content: bytes, tmp_path: Path) -> None:
    (tmp_path / NEWER).write_bytes(content)
    assert kept(tmp_path) == []
    file_in(tmp_path).append([event(1)])
    assert kept(tmp_path) == [1]


def test_the_events_of_another_machine_are_not_this_one_s(tmp_path: Path) -> None:
    """The disk was cloned, and is brought back later."""
    file_in(tmp_path, "other").append([event(1)])
    file_in(tmp_path).append([event(2)])
    file_in(tmp_path, "other").append([event(3)])
    assert kept(tmp_path) == [2] and kept(tmp_path, "other") == [1, 3]


@pytest.mark.parametrize(
    "make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/null", path)], ids=["pipe", "folder", "link"]
)
def test_what_is_no_file_is_refused_and_stays(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / NEWER)
    before = (tmp_path / NEWER).lstat().st_ino
    for use in (lambda: file_in(tmp_path).append([event(1)]), lambda: lines_in(str(tmp_path))):
        with pytest.raises(OSError):
            use()
    assert (tmp_path / NEWER).lstat().st_ino == before


def test_a_disk_that_takes_half_a_line_has_none_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = file_in(tmp_path)
    file.append([event(1)])
    before = (tmp_path / NEWER).read_bytes()
    write = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda fd, content: write(fd, content[: len(content) // 2]))
        with pytest.raises(OSError) as told:
            file.append([event(2)])
    assert told.value.errno == errno.ENOSPC and (tmp_path / NEWER).read_bytes() == before
    file.append([event(2)])
    assert kept(tmp_path) == [1, 2]


WRITER = """
import sys
from supervisor.adapters.journal.event_file import BATCH_MAX, EventFile
file, number = EventFile(sys.argv[1], "one"), int(sys.argv[2])
while True:
    batch = range(number, number + BATCH_MAX)
    file.append([{"time": "t", "event": "role", "number": each} for each in batch])
    number += BATCH_MAX
"""


@pytest.mark.long
def test_a_kill_in_the_middle_of_writing_leaves_whole_lines(tmp_path: Path) -> None:
    found: list[int] = []
    for _ in range(8):
        number = found[-1] + 1 if found else 0
        argv = [sys.executable, "-c", WRITER, str(tmp_path), str(number)]
        with subprocess.Popen(argv, cwd=ROOT) as writer:
            until(lambda: kept(tmp_path)[-1:] > [number + 200], "it writes")  # noqa: B023
            writer.send_signal(signal.SIGKILL)
        found = kept(tmp_path)
        assert found == list(range(found[0], found[-1] + 1))
