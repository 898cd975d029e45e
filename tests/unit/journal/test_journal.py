"""The journal: what is written comes back, and what is damaged is never taken for nothing."""

import os
import resource
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor.config import ConsulSettings
from supervisor.core.actions import EMPTY_RECORD, Reason, Record, Step, WriteRecord
from supervisor.core.settings import (
    CandidateCheck,
    Command,
    ElectionSettings,
    Hook,
    Run,
    SessionSettings,
    Tls,
    Webhook,
)
from supervisor.hooks.leftovers import Group
from supervisor.journal import (
    COMPACT_BYTES,
    RESERVE,
    Journal,
    JournalBusy,
    MachineIdentity,
    Recorded,
    UnreadableRecord,
)
from supervisor.journal.format import LEADER_BYTES_MAX, read, settings_line, state_line

ROOT = Path(__file__).parents[3]
HERE = MachineIdentity("machine", "host", "boot")
CONSUL = ConsulSettings(
    "http://127.0.0.1:8500", token="hunter2", tls=Tls(ca_file="/ca"), http_auth="me:hunter2"
)
COMMAND = Command(("/bin/true", "x"), env=(("A", "b"),), cwd="/", user="root", kill_after_s=2.0)
WEBHOOK = Webhook("https://h/", headers=(("X-A", "b"),), secret_file="/s", tls=Tls(verify=False))
SETTINGS = ElectionSettings(
    name="app",
    key="service/app/leader",
    value=b'{"a":1}\xff\x00',
    session=SessionSettings("app", ttl_s=None, node_checks=("serfHealth",)),
    on_acquire=(Hook("up", COMMAND, 3.0, 2),),
    on_lose=(Hook("down", WEBHOOK, 5.0), Hook("off", COMMAND, 5.0)),
    run=Run(COMMAND),
    candidate_check=CandidateCheck(Hook("candidate_check", COMMAND, 3.0)),
    on_adopt="acquire",
)
RECORD = Record(
    Step.HOLDING, "service/app/leader", "s", 7, 3, 1, 12.5, None, b"me\xff", None, Reason.ACQUIRED
)
GROUPS = (Group(12, 345, "s-acquire"),)


def whole(record: Record = RECORD, groups: tuple[Group, ...] = ()) -> bytes:
    return settings_line(SETTINGS, CONSUL, ("MY_TOKEN",)) + state_line(record, groups, HERE, "now")


def found_in(lines: bytes) -> Recorded:
    """What a file of these lines says, with the room behind them."""
    return read(lines + RESERVE)


# --- the format ------------------------------------------------------------------------------------


def test_everything_comes_back_but_the_secrets_of_consul() -> None:
    record = found_in(whole(RECORD, GROUPS))
    reached = replace(CONSUL, token=None, http_auth=None)
    assert record == Recorded(SETTINGS, reached, RECORD, HERE, GROUPS, ("MY_TOKEN",))
    assert b"hunter2" not in whole()


def test_a_person_can_read_it() -> None:
    text = whole().decode("ascii")
    assert '"step":"holding"' in text and '"item":"app"' in text and '"down"' in text


def test_what_cannot_be_read_tells_what_its_older_lines_said() -> None:
    """By its settings on_lose runs, and by its session what a crash left running is found."""
    data = whole() + b"00000000 {}\n"
    with pytest.raises(UnreadableRecord) as told:
        found_in(data)
    assert told.value.settings == SETTINGS and told.value.withheld == ("MY_TOKEN",)
    assert told.value.last is not None and told.value.last.state == RECORD


@pytest.mark.parametrize("text", [b"[]", b"null", b"{", b"[" * 100_000])
def test_a_line_that_is_no_record_cannot_be_read_whatever_its_checksum_says(text: bytes) -> None:
    with pytest.raises(UnreadableRecord):
        found_in(whole() + b"%08x %s\n" % (zlib.crc32(text), text))


def test_the_newest_state_counts() -> None:
    lost = Record(Step.SESSION, "k", "s")
    record = found_in(whole() + state_line(lost, (), HERE, "later"))
    assert record.state == lost


BAD_IDS = ["a\nb", "../../kv/x", "x" * 100_000, "\ud800", " "]


@pytest.mark.parametrize("session", BAD_IDS, ids=lambda each: ascii(each[:9]))
@pytest.mark.parametrize("paused", [False, True])
def test_a_session_with_an_id_that_consul_cannot_have_made_is_forgotten(session: str, paused: bool) -> None:
    """An earlier version took whatever a broken proxy called an ID; nothing was begun with it."""
    record = found_in(whole(Record(Step.SESSION, "k", session, paused=paused)))
    assert record.state == Record(paused=paused)


@pytest.mark.parametrize("session", BAD_IDS, ids=lambda each: ascii(each[:9]))
def test_a_tenure_with_such_an_id_is_damage(session: str) -> None:
    """So its on_lose runs; what an older line says still leads to the processes of a crash."""
    for step in (Step.TENURE, Step.HOLDING, Step.LOSING, Step.STUCK):
        with pytest.raises(UnreadableRecord, match="that Consul cannot have made") as told:
            read(whole() + state_line(replace(RECORD, step=step, session=session), (), HERE, "later") + b" ")
        assert told.value.last is not None and told.value.last.state == RECORD


@pytest.mark.parametrize("room", [b"", b"    ", b"\0" * 4, b"\0" * 4 + b"    "])
@pytest.mark.parametrize("cut", range(1, 80, 7))
def test_a_line_without_its_end_is_damage(cut: int, room: bytes) -> None:
    later = state_line(Record(Step.LOSING, "k", "s"), (), HERE, "later")
    with pytest.raises(UnreadableRecord, match="has no end"):
        read(whole() + later[:-cut] + room)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b" " * 9, "it is empty"),
        (b"1234", "has no end"),
        (b"\0" * 9, "has no end"),
        (whole(), "spaces behind its last line are missing"),
        (whole() + b"\0" * 9, "has no end"),
        (settings_line(SETTINGS, CONSUL, ()) + b" ", "no state follows its newest settings"),
        (whole() + settings_line(SETTINGS, CONSUL, ()) + b" ", "no state follows its newest settings"),
    ],
)
def test_a_file_that_no_write_leaves_behind_is_damage(content: bytes, why: str) -> None:
    with pytest.raises(UnreadableRecord, match=why):
        read(content)


def test_settings_alone_tell_by_what_to_wind_up_and_nothing_else() -> None:
    with pytest.raises(UnreadableRecord) as told:
        read(settings_line(SETTINGS, CONSUL, ("MY_TOKEN",)))
    assert told.value.settings == SETTINGS and told.value.withheld == ("MY_TOKEN",)
    assert told.value.last is not None and told.value.last.state == EMPTY_RECORD
    assert told.value.last.identity != HERE


@pytest.mark.parametrize("line", [0, 1])
def test_a_damaged_line_that_counts_is_said(line: int) -> None:
    lines = whole().splitlines(keepends=True)
    lines[line] = lines[line].replace(b"service", b"sErvice", 1)
    with pytest.raises(UnreadableRecord, match="checksum"):
        found_in(b"".join(lines))


def test_a_damaged_line_that_a_newer_one_replaces_does_not_matter() -> None:
    lines = (whole() + state_line(RECORD, (), HERE, "later")).splitlines(keepends=True)
    lines[1] = lines[1].replace(b"service", b"sErvice", 1)
    record = found_in(b"".join(lines))
    assert record.state == RECORD


def test_fields_of_another_version_are_passed_over_or_take_their_default() -> None:
    import json
    import zlib

    lines = []
    for line in whole().splitlines():
        content = json.loads(line.partition(b" ")[2]) | {"of_tomorrow": 1}
        content.pop("paused", None)
        text = json.dumps(content).encode()
        lines.append(b"%08x %s\n" % (zlib.crc32(text), text))
    record = found_in(b"".join(lines))
    assert record.state == RECORD


def test_a_step_that_nobody_knows_is_unreadable() -> None:
    import json
    import zlib

    lines = whole().splitlines(keepends=True)
    content = json.loads(lines[1].partition(b" ")[2]) | {"step": "dancing"}
    text = json.dumps(content).encode()
    with pytest.raises(UnreadableRecord, match="dancing"):
        found_in(lines[0] + b"%08x %s\n" % (zlib.crc32(text), text))


def test_a_long_value_is_not_kept() -> None:
    record = found_in(whole(replace(RECORD, leader=b"x" * (LEADER_BYTES_MAX + 1))))
    assert record.state.leader == b""


# --- the files -------------------------------------------------------------------------------------


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(str(tmp_path / "state"), CONSUL, identity=HERE)


def keep(journal: Journal, record: Record, settings: ElectionSettings = SETTINGS) -> str:
    return journal.write(WriteRecord("app", record, settings))


def again(tmp_path: Path) -> Recorded | UnreadableRecord | None:
    """What the next process finds."""
    following = Journal(str(tmp_path / "state"), CONSUL, identity=HERE)
    found = dict(following.recorded()).get("app")
    following.close()
    return found


def state_of(found: Recorded | UnreadableRecord | None) -> Record:
    assert isinstance(found, Recorded)
    return found.state


def test_what_is_kept_is_found_by_the_next_process_and_nothing_is_no_file(
    journal: Journal, tmp_path: Path
) -> None:
    assert keep(journal, RECORD) == ""
    journal.close()
    assert state_of(again(tmp_path)) == RECORD
    following = Journal(str(tmp_path / "state"), CONSUL, identity=HERE)
    keep(following, EMPTY_RECORD)
    following.close()
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["lock"]


def test_only_we_can_read_it(journal: Journal, tmp_path: Path) -> None:
    """Hooks' environments and headers may hold secrets."""
    keep(journal, RECORD)
    journal.close()
    modes = [path.stat().st_mode & 0o777 for path in [tmp_path / "state", *(tmp_path / "state").iterdir()]]
    assert modes[0] == 0o700 and set(modes[1:]) == {0o600}


def test_a_record_stays_small_however_long_a_tenure_lasts(journal: Journal, tmp_path: Path) -> None:
    for second in range(3000):
        assert keep(journal, replace(RECORD, contact=float(second))) == ""
    journal.close()
    assert (tmp_path / "state" / "app.journal").stat().st_size < COMPACT_BYTES + 2 * len(RESERVE)
    assert state_of(again(tmp_path)).contact == 2999.0


def test_each_record_can_be_read_when_the_room_that_was_kept_is_used_up(
    journal: Journal, tmp_path: Path
) -> None:
    keep(journal, RECORD)
    path = tmp_path / "state" / "app.journal"
    for number in range(100):  # of some 300 bytes each, and 16 KiB are kept for how a tenure ends
        losing = replace(RECORD, step=Step.LOSING, contact=float(number))
        assert keep(journal, losing) == ""
        assert read(path.read_bytes()).state == losing


def test_settings_that_change_are_written_before_the_state(journal: Journal, tmp_path: Path) -> None:
    keep(journal, RECORD)
    keep(journal, RECORD, replace(SETTINGS, on_lose=()))
    journal.close()
    found = again(tmp_path)
    assert isinstance(found, Recorded) and found.settings.on_lose == ()


def test_groups_are_on_record_while_they_run(journal: Journal, tmp_path: Path) -> None:
    keep(journal, RECORD)
    journal.group_began("app", GROUPS[0])
    content = (tmp_path / "state" / "app.journal").read_bytes()
    running = read(content)
    assert running.groups == GROUPS and running.state == RECORD
    journal.group_ended("app", GROUPS[0])
    assert not journal.is_settled("app")
    journal.settle("app")
    assert journal.is_settled("app")
    journal.close()
    found = again(tmp_path)
    assert isinstance(found, Recorded) and found.groups == ()


def test_the_end_of_a_group_stands_in_the_next_record(journal: Journal, tmp_path: Path) -> None:
    """One line for both: a hand-over waits for it."""
    keep(journal, RECORD)
    journal.group_began("app", GROUPS[0])
    journal.group_ended("app", GROUPS[0])
    keep(journal, replace(RECORD, step=Step.LOSING))
    assert journal.is_settled("app")
    journal.close()
    found = again(tmp_path)
    assert isinstance(found, Recorded) and found.groups == () and found.state.step is Step.LOSING


@pytest.mark.parametrize("content", [b"", b" ", whole(), whole() + b"x" * 20_000, whole() + b"\0"])
def test_the_next_record_replaces_what_is_damaged(journal: Journal, tmp_path: Path, content: bytes) -> None:
    journal.close()
    path = tmp_path / "state" / "app.journal"
    path.write_bytes(content)
    assert isinstance(again(tmp_path), UnreadableRecord)
    following = Journal(str(tmp_path / "state"), CONSUL, identity=HERE)
    assert keep(following, RECORD) == ""
    following.close()
    assert state_of(again(tmp_path)) == RECORD


def test_two_processes_never_share_a_folder(journal: Journal, tmp_path: Path) -> None:
    with pytest.raises(JournalBusy, match="another consul-supervisor"):
        Journal(str(tmp_path / "state"), CONSUL)
    journal.close()
    Journal(str(tmp_path / "state"), CONSUL).close()


def test_a_file_far_too_large_is_unreadable(journal: Journal, tmp_path: Path) -> None:
    journal.close()
    with (tmp_path / "state" / "app.journal").open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    assert isinstance(again(tmp_path), UnreadableRecord)


def in_a_child_without_room(body: Callable[[Path], None], folder: Path) -> None:
    """RLIMIT_FSIZE: a file of this process may be no longer; the kernel says EFBIG."""
    pid = os.fork()
    if pid == 0:
        try:
            import signal

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            body(folder)
        except BaseException as error:  # noqa: BLE001  # a child tells, and never returns
            print(error, file=sys.stderr)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_record_without_room_is_refused_and_what_stood_before_still_stands(tmp_path: Path) -> None:
    def body(folder: Path) -> None:
        journal = Journal(str(folder / "state"), CONSUL, identity=HERE)
        assert keep(journal, RECORD) == ""
        before = (folder / "state" / "app.journal").read_bytes()
        whole_bytes = len(before.rstrip(b" "))
        resource.setrlimit(resource.RLIMIT_FSIZE, (whole_bytes + 100, resource.RLIM_INFINITY))
        why_not = keep(journal, replace(RECORD, step=Step.LOSING))
        assert "cannot write" in why_not and "File too large" in why_not
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert keep(journal, replace(RECORD, step=Step.LOSING)) == ""

    in_a_child_without_room(body, tmp_path)
    assert state_of(again(tmp_path)).step is Step.LOSING


def test_what_could_not_be_written_whole_is_no_part_of_what_comes_next(tmp_path: Path) -> None:
    """Longer settings, of which some had room; then a short line in their place."""

    def body(folder: Path) -> None:
        journal = Journal(str(folder / "state"), CONSUL, identity=HERE)
        assert keep(journal, RECORD) == ""
        whole_bytes = len((folder / "state" / "app.journal").read_bytes().rstrip(b" "))
        longer = settings_line(SETTINGS, CONSUL, ())
        resource.setrlimit(resource.RLIMIT_FSIZE, (whole_bytes + len(longer) + 100, resource.RLIM_INFINITY))
        assert keep(journal, RECORD, replace(SETTINGS, on_adopt="none"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert keep(journal, replace(RECORD, contact=99.0)) == ""

    in_a_child_without_room(body, tmp_path)
    assert state_of(again(tmp_path)).contact == 99.0


def test_a_disk_that_fills_up_has_room_for_the_loss_also_after_a_restart(tmp_path: Path) -> None:
    def body(folder: Path) -> None:
        path = folder / "state" / "app.journal"
        before = Journal(str(folder / "state"), CONSUL, identity=HERE)
        assert keep(before, RECORD) == ""
        before.close()
        size = path.stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        journal = Journal(str(folder / "state"), CONSUL, identity=HERE)
        dict(journal.recorded())
        assert keep(journal, RECORD) == ""
        assert path.stat().st_size == size  # what is given back, somebody else takes
        kept = [at for at in range(100) if not keep(journal, replace(RECORD, contact=float(at)))]
        assert 5 < len(kept) < 100  # contacts leave the last of the room alone
        record = read(path.read_bytes())
        assert record.state.contact == kept[-1]
        assert keep(journal, replace(RECORD, step=Step.LOSING)) == ""

    in_a_child_without_room(body, tmp_path)
    assert state_of(again(tmp_path)).step is Step.LOSING


def test_without_room_the_end_of_a_tenure_is_said_by_no_record(tmp_path: Path) -> None:
    def body(folder: Path) -> None:
        journal = Journal(str(folder / "state"), CONSUL, identity=HERE)
        assert keep(journal, RECORD) == ""
        whole_bytes = len((folder / "state" / "app.journal").read_bytes().rstrip(b" "))
        resource.setrlimit(resource.RLIMIT_FSIZE, (whole_bytes, resource.RLIM_INFINITY))
        assert keep(journal, Record(Step.SESSION, "k", "s")) == ""

    in_a_child_without_room(body, tmp_path)
    assert again(tmp_path) is None


FULL_DISK = """
import contextlib
import sys
from pathlib import Path
from tests.unit.journal.test_journal import *
folder = Path(sys.argv[1])
journal = Journal(str(folder / "state"), CONSUL, identity=HERE)
assert keep(journal, RECORD) == ""
with (folder / "rest").open("wb", buffering=0) as file, contextlib.suppress(OSError):
    while True:
        file.write(bytes(1024))
for second in range(1000):
    if why_not := keep(journal, replace(RECORD, contact=float(second))):
        break
assert "No space left" in why_not, why_not
assert keep(journal, replace(RECORD, step=Step.LOSING)) == ""
assert keep(journal, replace(RECORD, step=Step.STUCK)) == ""
journal.close()
assert state_of(again(folder)).step is Step.STUCK
"""


def test_on_a_full_disk_a_loss_is_on_record_all_the_same(tmp_path: Path) -> None:
    """In a mount namespace, with a file system of 128 KiB: room for it is kept from the beginning."""
    namespace = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    mount = 'mount -t tmpfs -o size=128k none "$1" && exec "$2" -c "$0" "$1"'
    done = subprocess.run(
        [*namespace, "sh", "-c", mount, FULL_DISK, tmp_path, sys.executable],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr


def test_records_are_forced_to_disk_but_not_for_news_alone(tmp_path: Path) -> None:
    wanted: list[Path] = []
    journal = Journal(str(tmp_path / "state"), CONSUL, identity=HERE, wants_disk=wanted.append)
    keep(journal, RECORD)
    keep(journal, replace(RECORD, contact=20.0))
    keep(journal, replace(RECORD, step=Step.LOSING))
    journal.close()
    assert len(wanted) == 2


def test_sync_knows_our_way_of_calling_it(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    subprocess.run(["sync", "--data", "--", tmp_path / "f"], check=True)


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_link(path: Path) -> None:
    target = path.parent / "elsewhere"
    target.write_bytes(whole())
    path.symlink_to(target)


@pytest.mark.parametrize("make", [make_pipe, make_link, Path.mkdir])
def test_what_is_no_file_is_read_as_damage_and_waits_for_nobody(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    (tmp_path / "state").mkdir()
    make(tmp_path / "state/app.journal")
    assert isinstance(again(tmp_path), UnreadableRecord)


@pytest.mark.parametrize("make", [make_pipe, make_link])
def test_a_file_takes_the_place_of_what_is_none(
    journal: Journal, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "state/app.journal")
    assert journal.write(WriteRecord("app", RECORD, SETTINGS)) == ""
    journal.close()
    assert state_of(again(tmp_path)) == RECORD


def test_the_record_of_one_election_is_not_that_of_another(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path), CONSUL, identity=HERE)
    journal.write(WriteRecord("app", RECORD, SETTINGS))
    journal.close()
    (tmp_path / "backup.journal").write_bytes((tmp_path / "app.journal").read_bytes())
    found = dict(Journal(str(tmp_path), CONSUL, identity=HERE).recorded())
    assert isinstance(found["app"], Recorded)
    assert isinstance(found["backup"], UnreadableRecord) and "copy of the record of app" in str(
        found["backup"]
    )


def test_a_file_that_was_removed_is_written_anew_with_its_settings(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path), CONSUL, identity=HERE)
    journal.write(WriteRecord("app", RECORD, SETTINGS))
    (tmp_path / "app.journal").unlink()
    later = replace(RECORD, contact=13.5)
    assert journal.write(WriteRecord("app", later, SETTINGS)) == ""
    journal.close()
    ((_, found),) = Journal(str(tmp_path), CONSUL, identity=HERE).recorded()
    assert isinstance(found, Recorded) and found.state == later


# --- another file ----------------------------------------------------------------------------------


def test_how_consul_is_reached_and_what_is_withheld_stand_with_the_next_state(tmp_path: Path) -> None:
    """A file of the token that the new configuration names no more may be gone at the next start."""
    journal = Journal(str(tmp_path), CONSUL, identity=HERE)
    assert not journal.write(WriteRecord("app", RECORD, SETTINGS))
    moved = replace(CONSUL, token=None, http_auth=None, token_file="/elsewhere")
    journal.follow(moved, ["ANOTHER", "MY_TOKEN"])
    assert not journal.write(WriteRecord("app", replace(RECORD, contact=13.0), SETTINGS))
    journal.close()
    ((_, record),) = Journal(str(tmp_path), CONSUL, identity=HERE).recorded()
    assert isinstance(record, Recorded)
    assert record.consul == moved and record.withheld == ("ANOTHER", "MY_TOKEN")


def test_a_day_of_files_that_change_nothing_of_it_adds_nothing(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path), CONSUL, identity=HERE)
    for number in range(1440):
        journal.follow(CONSUL, ())
        assert not journal.write(WriteRecord("app", replace(RECORD, contact=float(number)), SETTINGS))
    journal.close()
    content = (tmp_path / "app.journal").read_bytes()
    assert len(content) < 2 * COMPACT_BYTES and content.count(b'"record":"settings"') == 1


def test_a_day_of_new_settings_stays_within_the_same_bounds(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path), CONSUL, identity=HERE)
    for number in range(1440):
        journal.follow(CONSUL, (f"VARIABLE_{number}",))
        assert not journal.write(
            WriteRecord("app", replace(RECORD, contact=float(number)), replace(SETTINGS))
        )
    journal.close()
    assert (tmp_path / "app.journal").stat().st_size < 2 * COMPACT_BYTES
