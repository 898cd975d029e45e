"""What a live drill concludes from answers of Consul, and the command that it prints for the way back."""

import asyncio

import pytest

from supervisor.cli import live_drilling
from supervisor.cli.arguments import parser
from supervisor.config import consul_settings
from supervisor.core.outcomes import KeyView, ListedSession
from supervisor.core.settings import ElectionSettings, SessionSettings
from supervisor.drill.live.plan import LivePlan, back_command
from supervisor.drill.live.sight import Sight

OURS, THEIRS, THIRD = (f"{number}f8e9dd4-3c55-4c9a-9a0e-0f3c1c7a8a11" for number in range(3))


def listed(session: str, node: str) -> ListedSession:
    return ListedSession(session, "consul-supervisor:app", node, "10s", 15.0, 1)


def plan(here: str = "node1", there: str = "node2", delay_s: float = 0.0) -> LivePlan:
    session = SessionSettings(name="consul-supervisor:app", ttl_s=10.0, lock_delay_s=15.0)
    item = ElectionSettings("app", "app/leader", b"", session, acquire_delay_s=delay_s)
    return LivePlan(consul_settings({}), item, "socket", listed(OURS, here), listed(THEIRS, there), 7)


def held(session: str, index: int) -> KeyView:
    return KeyView(index, session, create_index=1, modify_index=index)


def sight(*views: KeyView, **how: float) -> Sight:
    seen = Sight(plan(**how), "title", OURS)  # type: ignore[arg-type]
    for view in views:
        seen.see(view)
    seen.compare(THEIRS, 7)
    return seen


def broken(seen: Sight) -> list[str]:
    return [promise.what for promise in seen.promises if not promise.kept]


def test_the_gap_is_the_time_in_which_the_key_had_no_holder(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(100))
    monkeypatch.setattr("supervisor.drill.live.sight.time.monotonic", lambda: float(next(times)))
    seen = sight(held(OURS, 7), KeyView(8), KeyView(8), held(THEIRS, 9), delay_s=60.0)
    assert seen.taken_at is not None and seen.freed_at is not None
    assert seen.gap_s == seen.taken_at - seen.freed_at > 0
    assert broken(seen) == []
    assert broken(sight(held(OURS, 7), KeyView(8), held(THEIRS, 9))) == ["no node is holder (acquire_delay)"]


def test_a_gap_that_no_answer_shows_is_none() -> None:
    seen = sight(held(OURS, 7), held(THEIRS, 9))
    assert seen.gap_s == 0.0 and broken(seen) == []
    assert seen.handover("there").node == "node2"


def test_another_holder_than_the_expected_one_breaks_the_promise() -> None:
    seen = sight(held(OURS, 7), held(THIRD, 9))
    assert broken(seen) == ["the next holder"] and seen.promises[0].measured == THIRD


def test_a_fencing_token_that_does_not_grow_breaks_the_promise() -> None:
    assert broken(sight(held(OURS, 7), held(THEIRS, 7))) == ["the fencing token"]


@pytest.mark.parametrize(("last", "found"), [(held(OURS, 7), "node1 still holds it"), (KeyView(8), "nobody")])
def test_without_a_new_holder_every_promise_is_broken(last: KeyView, found: str) -> None:
    seen = sight(held(OURS, 7), last)
    assert len(broken(seen)) == 3 and seen.promises[0].measured == found
    assert seen.handover("there").token is None


def test_an_answer_ends_the_wait_only_when_another_node_holds() -> None:
    seen = Sight(plan(), "title", OURS)
    assert not seen.answered.is_set()
    assert [seen.see(view) for view in (held(OURS, 7), KeyView(8), held(THEIRS, 9))] == [False, False, True]
    assert asyncio.run(seen.answered.wait())


def test_the_way_back_names_the_node_and_else_the_session() -> None:
    ours, other = listed(OURS, "node1"), listed(THIRD, "node3")
    start, end = "consul-supervisor step-down app --to ", " --for 1s --reason drill"
    assert back_command(plan(), ours, [ours, other]) == f"{start}node1{end}"
    assert back_command(plan(), ours, [ours, listed(THIRD, "NODE1")]) == f"{start}{OURS}{end}"


@pytest.mark.parametrize("node", ["-oProxyCommand=id", "a;id", "$(id)", "a b"])
def test_a_node_whose_name_a_shell_may_take_for_something_else_is_named_by_its_session(node: str) -> None:
    assert f"--to {OURS} " in back_command(plan(here=node), listed(OURS, node), [listed(OURS, node)])


@pytest.mark.parametrize("node", ["-oProxyCommand=id", "a;id", "$(id)"])
def test_such_a_node_does_not_reach_the_shell_of_back_by(
    node: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planned = plan(there=node)
    monkeypatch.setattr(live_drilling, "_plan", lambda *given: planned)
    monkeypatch.setattr(live_drilling, "run_async", lambda work: pytest.fail("it hands over"))
    options = parser().parse_args(["drill", "--live", "app", "--yes", "--back-by", "ssh {node} {command}"])
    assert live_drilling._drill(options, planned.consul, planned.item) == 1
    assert f"cannot use --back-by: {node} is no plain name for a shell" in capsys.readouterr().err
