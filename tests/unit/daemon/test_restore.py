"""The contenders that a process restores from the file and the records: no record is passed over."""

from dataclasses import replace
from typing import Any

import pytest

from supervisor.adapters.hooks.abandoned import Group
from supervisor.adapters.journal import MachineIdentity, Recorded, UnreadableRecord
from supervisor.config import ConsulSettings
from supervisor.core.actions import Point, Reason, Record, Role
from supervisor.core.contender.state import Contender
from supervisor.core.machines.tenure import Phase
from supervisor.core.settings import ElectionSettings, Wanted
from supervisor.daemon.restore import ProcessIdentity, Restored, restore
from tests.unit.core.play import contender

HERE = MachineIdentity("machine", "host", "boot")
ORIGIN = ProcessIdentity("instance", HERE, 2.0)
SETTINGS = contender()
RENAMED = Wanted(replace(SETTINGS, name="new"), 0.5)


def record(step: Point = Point.HOLDING, **changes: Any) -> Recorded:
    state = Record(step, "k", "s", 7, 3, 1, 1.0, leader=b"me", **changes.pop("state", {}))
    base = Recorded(SETTINGS, ConsulSettings("http://c"), state, HERE)
    return replace(base, **changes)


def begun(settings: ElectionSettings | None, found: Recorded | UnreadableRecord | None = None) -> Restored:
    wanted = [] if settings is None else [Wanted(settings, 0.5)]
    return restore(wanted, {} if found is None else {"n": found}, ORIGIN)


def only(found: Restored) -> Contender:
    (election,) = found.contenders
    return election


def test_without_a_record_an_election_begins_afresh() -> None:
    election = only(begun(SETTINGS))
    assert election.tenure is None and not election.session.id and election.spread == 0.5


def test_a_tenure_that_fits_the_file_is_adopted() -> None:
    election = only(begun(SETTINGS, record()))
    assert election.tenure is not None and election.tenure.phase is Phase.ADOPTING
    assert not election.winding_up


def test_changed_hooks_do_not_end_a_tenure_and_apply_after_its_adoption() -> None:
    wanted = replace(SETTINGS, on_lose=())
    election = only(begun(wanted, record()))
    assert not election.winding_up
    assert (election.settings, election.next_settings) == (SETTINGS, wanted)
    assert only(begun(wanted, record(Point.SESSION))).settings == wanted


@pytest.mark.parametrize(
    "changes",
    [
        {"key": "other"},
        {"session": replace(SETTINGS.session, lock_delay_s=20.0)},
        {"contend": False, "on_acquire": (), "on_lose": ()},
    ],
)
def test_a_changed_key_or_session_begins_when_the_recorded_tenure_has_wound_up(
    changes: dict[str, Any],
) -> None:
    wanted = replace(SETTINGS, **changes)
    found = begun(wanted, record())
    assert only(found).winding_up and only(found).settings == SETTINGS
    (successor,) = found.successors
    assert successor.after == {"n"}
    assert successor.contender.settings == wanted and successor.contender.tenure is None


def test_a_recorded_election_that_the_file_has_dropped_is_wound_up() -> None:
    found = begun(None, record())
    assert only(found).winding_up and not found.successors


def test_a_renamed_election_begins_when_the_recorded_one_has_wound_up() -> None:
    """Both elections stop and start the same application."""
    found = restore([RENAMED], {"n": record()}, ORIGIN)
    assert only(found).settings == SETTINGS and only(found).winding_up
    (successor,) = found.successors
    assert successor.contender.settings.name == "new" and successor.after == {"n"}


def test_an_election_of_another_key_begins_at_once() -> None:
    found = restore([Wanted(replace(SETTINGS, name="new", key="other"), 0.5)], {"n": record()}, ORIGIN)
    assert len(found.contenders) == 2 and not found.successors


@pytest.mark.parametrize("field", ["machine", "host", "boot"])
def test_a_record_of_another_machine_host_or_boot_is_foreign(field: str) -> None:
    election = only(begun(SETTINGS, record(identity=replace(HERE, **{field: "other"}))))
    assert election.tenure is not None and election.tenure.phase is Phase.LOSING
    assert election.tenure.reason is Reason.CRASHED and not election.session.id


def test_a_foreign_record_stays_foreign_after_a_crash() -> None:
    """A crash in the on_lose of a foreign record does not make the session ours."""
    election = only(begun(SETTINGS, record(Point.LOSING, state={"foreign": True})))
    assert not election.session.id


def test_an_unreadable_record_means_on_lose() -> None:
    election = only(begun(SETTINGS, UnreadableRecord("why")))
    assert election.tenure is not None and election.tenure.phase is Phase.LOSING
    assert election.tenure.reason is Reason.CRASHED and not election.session.id


def test_a_recorded_on_lose_that_runs_means_losing_at_any_recorded_step() -> None:
    """The process crashed between the begin of on_lose and the record of the loss."""
    groups = (Group(12, 345, "s-lose"),)
    election = only(begun(SETTINGS, record(groups=groups)))
    assert election.tenure is not None and election.tenure.phase is Phase.LOSING
    assert only(begun(SETTINGS, record(groups=(Group(12, 345, "s-acquire"),)))).tenure.phase is Phase.ADOPTING  # type: ignore[union-attr]


def test_a_pause_is_kept_over_another_key() -> None:
    found = begun(replace(SETTINGS, key="other"), record(Point.SESSION, state={"paused": True}))
    assert found.contenders[0].paused, "whose successor gets its pause"


def test_a_pause_alone_fits_any_key() -> None:
    paused = Recorded(SETTINGS, ConsulSettings("http://c"), Record(paused=True), HERE)
    election = only(begun(replace(SETTINGS, key="other"), paused))
    assert election.paused and election.role is Role.PAUSED
    ends = replace(paused, state=Record(paused=True, pause_ends_at=99.0))
    assert only(begun(replace(SETTINGS, key="other"), ends)).paused_until == 99.0
    assert only(begun(SETTINGS, ends)).paused_until == 99.0


def test_an_unreadable_record_is_wound_up_by_the_last_readable_settings() -> None:
    spoilt = UnreadableRecord("why", record())
    assert only(begun(replace(SETTINGS, on_lose=()), spoilt)).settings == SETTINGS
    renamed = restore([RENAMED], {"n": spoilt}, ORIGIN)
    assert only(renamed).tenure is not None and only(renamed).settings == SETTINGS
    assert [each.after for each in renamed.successors] == [{"n"}]


def test_a_renamed_election_inherits_the_pause_of_its_key() -> None:
    found = restore([RENAMED], {"n": record(Point.SESSION, state={"paused": True})}, ORIGIN)
    assert found.contenders[0].paused, "whose successor gets its pause"


def test_a_recorded_holder_does_not_wait_for_another_election_of_its_key() -> None:
    """The lease of the recorded tenure is running."""
    other = replace(record(), settings=replace(SETTINGS, name="new"))
    found = restore([RENAMED], {"n": record(Point.SESSION), "new": other}, ORIGIN)
    assert not found.successors
    assert [each.tenure is not None for each in found.contenders] == [False, True]


def test_one_of_many_items_begins_later_unless_it_has_a_recorded_tenure() -> None:
    """1,000 new sessions at once would time each other out, and a recorded tenure would be lost meanwhile."""
    late = replace(Wanted(SETTINGS, 0.5), delay_s=3.0)
    fresh = only(restore([late], {}, ORIGIN))
    assert fresh.session.write.deadline == ORIGIN.now + 3.0
    held = only(restore([late], {"n": record()}, ORIGIN))
    assert held.tenure is not None and held.session.id == "s" and held.rejoin_at < ORIGIN.now
