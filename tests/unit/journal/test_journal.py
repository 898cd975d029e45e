"""The journal: each record is read as it was written, and a damaged one never counts as no record."""

import os
import resource
import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor.adapters.hooks.abandoned import Group
from supervisor.adapters.journal import Journal, MachineIdentity, Recorded, UnreadableRecord
from supervisor.adapters.journal.checked_line import content_of, line_of
from supervisor.adapters.journal.format import LEADER_BYTES_MAX, read, settings_line, state_line
from supervisor.adapters.journal.record_file import COMPACT_BYTES, RESERVE
from supervisor.config import ConsulSettings
from supervisor.core.actions import EMPTY_RECORD, Point, Reason, Record, WriteRecord
from supervisor.core.settings import (
    CandidateCheck,
    Command,
    ElectionSettings,
    Hook,
    ItemSettings,
    Run,
    SemaphoreSettings,
    SessionSettings,
    Tls,
    Webhook,
)
from tests.support.captured import captured

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
    Point.HOLDING, "service/app/leader", "s", 7, 3, 1, 12.5, None, b"me\xff", None, Reason.ACQUIRED
)
GROUPS = (Group(12, 345, "s-acquire"),)


def whole(record: Record = RECORD, groups: tuple[Group, ...] = ()) -> bytes:
    return settings_line(SETTINGS, CONSUL, ("MY_TOKEN",)) + state_line(record, groups, HERE, "now")


def found_in(lines: bytes) -> Recorded:
    """Return the record in these lines, with the reserve behind them."""
    return read(lines + RESERVE)


# --- the format ------------------------------------------------------------------------------------


def test_everything_is_read_back_except_the_secrets_of_consul() -> None:
    record = found_in(whole(RECORD, GROUPS))
    reached = replace(CONSUL, token=None, http_auth=None)
    assert record == Recorded(SETTINGS, reached, RECORD, HERE, GROUPS, ("MY_TOKEN",))
    assert b"hunter2" not in whole()


@pytest.mark.parametrize(
    "settings",
    [
        ElectionSettings("app", "k", b"me", SessionSettings("app")),
        SemaphoreSettings("app", "p/.lock", b"me", SessionSettings("app"), limit=1),
        SETTINGS,
    ],
    ids=["election", "semaphore", "many-settings"],
)
def test_a_version_that_knows_fewer_settings_reads_a_record_that_uses_none_of_the_others(
    settings: ItemSettings,
) -> None:
    """Version 0.2.0 cannot read a record with a name that it does not know."""
    content = content_of(settings_line(settings, CONSUL, ()).splitlines()[0])
    assert content is not None
    written = content["settings"]
    assert "acquire_delay_s" not in written and "maintenance" not in written.get("candidate_check", {})
    assert ("limit" in written) is isinstance(settings, SemaphoreSettings)


@pytest.mark.parametrize("limit", [None, 1])
def test_a_setting_of_a_later_version_is_ignored(limit: int | None) -> None:
    settings: ItemSettings = ElectionSettings(
        "app", "k", b"me", SessionSettings("app"), on_lose=SETTINGS.on_lose
    )
    if limit is not None:
        settings = SemaphoreSettings("app", "k", b"me", SessionSettings("app"), limit=limit)
    content = content_of(settings_line(settings, CONSUL, ()).splitlines()[0])
    assert content is not None
    for part in (content["settings"], *(hook["call"] for hook in content["settings"].get("on_lose", ()))):
        part["of_a_later_version"] = 1
    assert found_in(line_of(content) + state_line(RECORD, (), HERE, "now")).settings == settings


def test_an_unreadable_record_still_gives_its_older_lines() -> None:
    """on_lose needs the settings, and the session finds the processes that a crash left running."""
    data = whole() + b"00000000 {}\n"
    with pytest.raises(UnreadableRecord) as unreadable:
        found_in(data)
    assert unreadable.value.settings == SETTINGS and unreadable.value.withheld == ("MY_TOKEN",)
    assert unreadable.value.last is not None and unreadable.value.last.state == RECORD


@pytest.mark.parametrize("text", [b"[]", b"null", b"{", b"[" * 100_000])
def test_a_line_that_is_no_record_is_unreadable_even_with_a_right_checksum(text: bytes) -> None:
    with pytest.raises(UnreadableRecord):
        found_in(whole() + b"%08x %s\n" % (zlib.crc32(text), text))


def test_the_newest_state_counts() -> None:
    lost = Record(Point.SESSION, "k", "s")
    record = found_in(whole() + state_line(lost, (), HERE, "later"))
    assert record.state == lost


BAD_IDS = ["a\nb", "../../kv/x", "x" * 100_000, "\ud800", " "]


@pytest.mark.parametrize("session", BAD_IDS, ids=lambda each: ascii(each[:9]))
@pytest.mark.parametrize("paused", [False, True])
def test_a_session_with_an_id_that_consul_cannot_have_made_is_forgotten(session: str, paused: bool) -> None:
    """An earlier version took any text of a broken proxy as an ID, and nothing was begun with it."""
    record = found_in(whole(Record(Point.SESSION, "k", session, paused=paused)))
    assert record.state == Record(paused=paused)


@pytest.mark.parametrize("session", BAD_IDS, ids=lambda each: ascii(each[:9]))
def test_a_tenure_with_an_id_that_consul_cannot_have_made_is_damage(session: str) -> None:
    """on_lose runs, and the older line still leads to the processes that a crash left running."""
    for step in (Point.TENURE, Point.HOLDING, Point.LOSING, Point.STUCK):
        with pytest.raises(UnreadableRecord, match="that Consul cannot have made") as unreadable:
            read(whole() + state_line(replace(RECORD, step=step, session=session), (), HERE, "later") + b" ")
        assert unreadable.value.last is not None and unreadable.value.last.state == RECORD


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b" " * 9, "it is empty"),
        (b"1234", "has no end"),
        (b"\0" * 9, "has no end"),
        (whole(), "spaces behind its last line are missing"),
        (whole() + b"\0" * 9, "has no end"),
        (whole() + state_line(RECORD, (), HERE, "later")[:-9] + b" " * 9, "has no end"),
        (settings_line(SETTINGS, CONSUL, ()) + b" ", "no state follows its newest settings"),
        (whole() + settings_line(SETTINGS, CONSUL, ()) + b" ", "no state follows its newest settings"),
    ],
)
def test_a_file_that_no_write_leaves_behind_is_damage(content: bytes, why: str) -> None:
    with pytest.raises(UnreadableRecord, match=why):
        read(content)


@pytest.mark.parametrize("line", [0, 1])
def test_a_damaged_line_that_counts_makes_the_record_unreadable(line: int) -> None:
    lines = whole().splitlines(keepends=True)
    lines[line] = lines[line].replace(b"service", b"sErvice", 1)
    with pytest.raises(UnreadableRecord, match="checksum"):
        found_in(b"".join(lines))


def test_a_damaged_line_that_a_newer_line_replaces_does_not_count() -> None:
    lines = (whole() + state_line(RECORD, (), HERE, "later")).splitlines(keepends=True)
    lines[1] = lines[1].replace(b"service", b"sErvice", 1)
    record = found_in(b"".join(lines))
    assert record.state == RECORD


def test_unknown_fields_are_ignored_and_missing_fields_take_their_default() -> None:
    lines = b""
    for line in whole().splitlines():
        content = content_of(line)
        assert content is not None
        content.pop("paused", None)
        lines += line_of({**content, "of_tomorrow": 1})
    assert found_in(lines).state == RECORD


def test_a_record_with_an_unknown_step_is_unreadable() -> None:
    settings, state = whole().splitlines(keepends=True)
    content = content_of(state.rstrip())
    assert content is not None
    with pytest.raises(UnreadableRecord, match="dancing"):
        found_in(settings + line_of({**content, "step": "dancing"}))


def test_a_value_that_is_too_long_is_not_recorded() -> None:
    record = found_in(whole(replace(RECORD, leader=b"x" * (LEADER_BYTES_MAX + 1))))
    assert record.state.leader == b""


# --- the files -------------------------------------------------------------------------------------


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(str(tmp_path / "state"), CONSUL, identity=HERE)


def keep(journal: Journal, record: Record, settings: ElectionSettings = SETTINGS) -> str:
    return journal.write(WriteRecord("app", record, settings))


def again(tmp_path: Path) -> Recorded | UnreadableRecord | None:
    """Return the record that the next process finds."""
    following = Journal(str(tmp_path / "state"), CONSUL, identity=HERE)
    found = dict(following.recorded()).get("app")
    following.close()
    return found


def whole_record(found: Recorded | UnreadableRecord | None) -> Recorded:
    assert isinstance(found, Recorded)
    return found


def state_of(found: Recorded | UnreadableRecord | None) -> Record:
    return whole_record(found).state


def test_a_record_is_found_by_the_next_process_and_an_empty_one_is_no_file(
    journal: Journal, tmp_path: Path
) -> None:
    assert keep(journal, RECORD) == ""
    journal.close()
    assert state_of(again(tmp_path)) == RECORD
    following = Journal(str(tmp_path / "state"), CONSUL, identity=HERE)
    keep(following, EMPTY_RECORD)
    following.close()
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["lock"]


def test_a_record_stays_small_however_long_a_tenure_lasts(journal: Journal, tmp_path: Path) -> None:
    for second in range(3000):
        assert keep(journal, replace(RECORD, contact=float(second))) == ""
    journal.close()
    assert (tmp_path / "state" / "app.journal").stat().st_size < COMPACT_BYTES + 2 * len(RESERVE)
    assert state_of(again(tmp_path)).contact == 2999.0


def test_each_record_can_be_read_when_the_reserve_is_used_up(journal: Journal, tmp_path: Path) -> None:
    keep(journal, RECORD)
    path = tmp_path / "state" / "app.journal"
    for number in range(100):  # of some 300 bytes each, and the reserve for the end of a tenure has 16 KiB
        losing = replace(RECORD, step=Point.LOSING, contact=float(number))
        assert keep(journal, losing) == ""
        assert read(path.read_bytes()).state == losing


def test_changed_settings_are_written_before_the_state(journal: Journal, tmp_path: Path) -> None:
    keep(journal, RECORD)
    keep(journal, RECORD, replace(SETTINGS, on_lose=()))
    journal.close()
    assert whole_record(again(tmp_path)).settings.on_lose == ()


def test_process_groups_are_recorded_while_they_run(journal: Journal, tmp_path: Path) -> None:
    keep(journal, RECORD)
    journal.group_began("app", GROUPS[0])
    content = (tmp_path / "state" / "app.journal").read_bytes()
    running = read(content)
    assert running.groups == GROUPS and running.state == RECORD
    journal.group_ended("app", GROUPS[0])
    assert [journal.settle("app"), journal.settle("app")] == ["", None]
    journal.close()
    assert whole_record(again(tmp_path)).groups == ()


def test_the_end_of_a_process_group_is_written_with_the_next_record(journal: Journal, tmp_path: Path) -> None:
    """One line has both, because a hand-over waits for the write."""
    keep(journal, RECORD)
    journal.group_began("app", GROUPS[0])
    journal.group_ended("app", GROUPS[0])
    keep(journal, replace(RECORD, step=Point.LOSING))
    assert journal.settle("app") is None
    journal.close()
    found = whole_record(again(tmp_path))
    assert found.groups == () and found.state.step is Point.LOSING


@pytest.mark.parametrize("content", [b"", b" ", whole(), whole() + b"x" * 20_000, whole() + b"\0"])
def test_the_next_record_replaces_a_damaged_one(journal: Journal, tmp_path: Path, content: bytes) -> None:
    journal.close()
    path = tmp_path / "state" / "app.journal"
    path.write_bytes(content)
    assert isinstance(again(tmp_path), UnreadableRecord)
    following = Journal(str(tmp_path / "state"), CONSUL, identity=HERE)
    assert keep(following, RECORD) == ""
    following.close()
    assert state_of(again(tmp_path)) == RECORD


def test_a_record_that_is_far_too_large_is_unreadable(journal: Journal, tmp_path: Path) -> None:
    journal.close()
    with (tmp_path / "state" / "app.journal").open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    assert isinstance(again(tmp_path), UnreadableRecord)


def in_a_child(body: Callable[[Journal, Path], None], folder: Path) -> None:
    """Run the body in a child, with a journal that has a record, and the path of that record."""
    pid = os.fork()
    if pid == 0:
        try:
            import signal

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            journal = Journal(str(folder / "state"), CONSUL, identity=HERE)
            assert keep(journal, RECORD) == ""
            body(journal, folder / "state" / "app.journal")
        except BaseException as error:  # noqa: BLE001  # a child reports any error, and never returns
            print(error, file=sys.stderr)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def limit_files(size: int) -> None:
    """Have the kernel answer writes beyond this size with EFBIG."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def used_bytes(path: Path) -> int:
    """Return the size of a record without its reserve."""
    return len(path.read_bytes().rstrip(b" "))


def test_a_record_without_room_is_refused_and_the_last_one_still_counts(tmp_path: Path) -> None:
    def body(journal: Journal, path: Path) -> None:
        limit_files(used_bytes(path) + 100)
        why_not = keep(journal, replace(RECORD, step=Point.LOSING))
        assert "cannot write" in why_not and "File too large" in why_not
        limit_files(resource.RLIM_INFINITY)
        assert keep(journal, replace(RECORD, step=Point.LOSING)) == ""

    in_a_child(body, tmp_path)
    assert state_of(again(tmp_path)).step is Point.LOSING


def test_a_line_that_was_cut_off_is_no_part_of_the_next_record(tmp_path: Path) -> None:
    """Longer settings are cut off for lack of room, and then a short line takes their place."""

    def body(journal: Journal, path: Path) -> None:
        longer = settings_line(SETTINGS, CONSUL, ())
        limit_files(used_bytes(path) + len(longer) + 100)
        assert keep(journal, RECORD, replace(SETTINGS, on_adopt="none"))
        limit_files(resource.RLIM_INFINITY)
        assert keep(journal, replace(RECORD, contact=99.0)) == ""

    in_a_child(body, tmp_path)
    assert state_of(again(tmp_path)).contact == 99.0


def test_a_full_disk_has_room_for_the_loss_even_after_a_restart(tmp_path: Path) -> None:
    def body(before: Journal, path: Path) -> None:
        before.close()
        size = path.stat().st_size
        limit_files(size)
        journal = Journal(str(path.parent), CONSUL, identity=HERE)
        dict(journal.recorded())
        assert keep(journal, RECORD) == ""
        assert path.stat().st_size == size  # room that is given back may be taken by others
        kept = [at for at in range(100) if not keep(journal, replace(RECORD, contact=float(at)))]
        assert 5 < len(kept) < 100  # contacts leave a part of the reserve for the loss
        record = read(path.read_bytes())
        assert record.state.contact == kept[-1]
        assert keep(journal, replace(RECORD, step=Point.LOSING)) == ""

    in_a_child(body, tmp_path)
    assert state_of(again(tmp_path)).step is Point.LOSING


def test_without_room_the_end_of_a_tenure_removes_the_record(tmp_path: Path) -> None:
    def body(journal: Journal, path: Path) -> None:
        limit_files(used_bytes(path))
        assert keep(journal, Record(Point.SESSION, "k", "s")) == ""

    in_a_child(body, tmp_path)
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
assert keep(journal, replace(RECORD, step=Point.LOSING)) == ""
assert keep(journal, replace(RECORD, step=Point.STUCK)) == ""
journal.close()
assert state_of(again(folder)).step is Point.STUCK
"""


def test_a_loss_is_recorded_on_a_full_disk(tmp_path: Path) -> None:
    """The file system has 128 KiB in a mount namespace, and the journal reserves its room at first."""
    namespace = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    mount = 'mount -t tmpfs -o size=128k none "$1" && exec "$2" -c "$0" "$1"'
    done = captured([*namespace, "sh", "-c", mount, FULL_DISK, tmp_path, sys.executable], cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_records_are_copied_to_disk_except_for_a_new_contact_alone(tmp_path: Path) -> None:
    wanted: list[str] = []
    journal = Journal(str(tmp_path / "state"), CONSUL, identity=HERE, wants_copy=wanted.append)
    keep(journal, RECORD)
    keep(journal, replace(RECORD, contact=20.0))
    assert len(wanted) == 1
    journal.write(WriteRecord("app", replace(RECORD, contact=21.0), replace(SETTINGS, value=b"n2")))
    assert len(wanted) == 2
    keep(journal, replace(RECORD, step=Point.LOSING))
    journal.close()
    assert len(wanted) == 3


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_link(path: Path) -> None:
    target = path.parent / "elsewhere"
    target.write_bytes(whole())
    path.symlink_to(target)


@pytest.mark.parametrize("make", [make_pipe, make_link, Path.mkdir])
def test_a_record_that_is_no_regular_file_is_unreadable_and_does_not_block(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    (tmp_path / "state").mkdir()
    make(tmp_path / "state/app.journal")
    assert isinstance(again(tmp_path), UnreadableRecord)


@pytest.mark.parametrize("make", [make_pipe, make_link])
def test_a_new_record_replaces_a_pipe_or_a_link(
    journal: Journal, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "state/app.journal")
    assert journal.write(WriteRecord("app", RECORD, SETTINGS)) == ""
    journal.close()
    assert state_of(again(tmp_path)) == RECORD


def test_a_copy_of_another_elections_record_is_unreadable(journal: Journal, tmp_path: Path) -> None:
    keep(journal, RECORD)
    state = tmp_path / "state"
    (state / "backup.journal").write_bytes((state / "app.journal").read_bytes())
    found = dict(journal.recorded())
    assert isinstance(found["app"], Recorded)
    assert "copy of the record of app" in str(found["backup"])


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
def test_a_file_that_was_removed_or_replaced_is_written_again_with_its_settings(
    journal: Journal, tmp_path: Path, replaced: bool
) -> None:
    """An operator may restore an old copy of the directory below a daemon that runs."""
    keep(journal, RECORD)
    (tmp_path / "state" / "app.journal").unlink()
    if replaced:
        other = Journal(str(tmp_path / "other"), CONSUL, identity=HERE)
        keep(other, RECORD, replace(SETTINGS, key="former/key"))
        (tmp_path / "other" / "app.journal").replace(tmp_path / "state" / "app.journal")
    later = replace(RECORD, contact=13.5)
    assert keep(journal, later) == ""
    journal.close()
    found = whole_record(again(tmp_path))
    assert (found.state, found.settings) == (later, SETTINGS)


# --- a reload --------------------------------------------------------------------------------------


def test_the_next_record_has_the_new_address_of_consul_and_the_new_withheld_variables(
    journal: Journal, tmp_path: Path
) -> None:
    """The token file that the new configuration no longer names may be gone at the next start."""
    keep(journal, RECORD)
    moved = replace(CONSUL, token=None, http_auth=None, token_file="/elsewhere")
    journal.follow(moved, ["ANOTHER", "MY_TOKEN"])
    keep(journal, replace(RECORD, contact=13.0))
    journal.close()
    record = whole_record(again(tmp_path))
    assert record.consul == moved and record.withheld == ("ANOTHER", "MY_TOKEN")


@pytest.mark.parametrize("changes", [False, True])
def test_a_day_of_reloads_keeps_the_record_within_its_bounds(
    journal: Journal, tmp_path: Path, changes: bool
) -> None:
    """Reloads without a change add no settings to it."""
    for number in range(1440):
        journal.follow(CONSUL, (f"VARIABLE_{number * changes}",))
        assert keep(journal, replace(RECORD, contact=float(number))) == ""
    journal.close()
    content = (tmp_path / "state" / "app.journal").read_bytes()
    assert len(content) < 2 * COMPACT_BYTES and (content.count(b'"record":"settings"') > 1) is changes
