"""The session that ``step-down --to`` means: exactly one candidate, or a refusal that names them all."""

from dataclasses import replace

import pytest

from supervisor.adapters.consul.candidates import NoTarget, target_of
from supervisor.adapters.consul.presence import Present
from supervisor.core.outcomes import ListedSession, SessionsView
from supervisor.core.settings import ElectionSettings, SessionSettings

NAME = "consul-supervisor:app"
OURS, VM2, VM3 = "11111111-1111", "22222222-2222", "33333333-3333"


def listed(session: str, node: str, name: str = NAME, index: int = 1) -> ListedSession:
    return ListedSession(session, name, node, "10s", 15.0, index)


RIGHT = 'to see all nodes, give the token: session_prefix "" { policy = "read" }'
HOLDER = listed(OURS, "vm1")
SEEN = SessionsView((listed(VM3, "vm3", index=9), HOLDER, listed(VM2, "vm2", index=3)))


def told(host: str, consul_node: str, role: str) -> Present:
    return Present(host, consul_node, {}, {"app": (role, "")}, "passing", "")


FLEET = (told("rack7", "vm3", "waiting"), told("rack9", "vm9", "paused"), told("vm9", "vm2", "waiting"))


def target(
    node: str,
    seen: SessionsView = SEEN,
    name: str = NAME,
    hostname: str = "vm1",
    present: tuple[Present, ...] | str = "not known",
) -> str:
    settings = ElectionSettings("app", "k", b"", SessionSettings(name))
    return target_of(node, settings, seen, present, (OURS, hostname), hostname).id


def refused(node: str, seen: SessionsView = SEEN, name: str = NAME, *present: Present) -> str:
    with pytest.raises(NoTarget) as error:
        target(node, seen, name, present=present)
    return str(error.value)


@pytest.mark.parametrize("node", ["vm2", "VM2", VM2])
def test_a_node_is_named_as_in_consul_or_by_its_session(node: str) -> None:
    assert target(node) == VM2


def test_an_unknown_node_is_refused_with_the_candidates_the_oldest_first() -> None:
    assert refused("vm9") == f"vm9 is no candidate; there are vm2 ({VM2}), vm3 ({VM3})"


@pytest.mark.parametrize("node", ["vm1", "VM1", OURS])
def test_the_holder_is_no_candidate(node: str) -> None:
    assert refused(node).startswith(f"{node} holds it itself; there are vm2")


def test_sessions_of_other_items_are_no_candidates() -> None:
    seen = SessionsView((HOLDER, listed(VM2, "vm2", "consul-supervisor:app2"), listed(VM3, "vm3", "app")))
    none = f"is no candidate; no other node has a session of this item; {RIGHT}"
    assert refused("vm2", seen) == f"vm2 {none}"
    assert refused(VM2, seen) == f"{VM2} {none}"


def test_a_node_with_two_candidates_is_refused_with_both() -> None:
    """Two supervisors share an agent, or the TTL of an earlier session is not over."""
    seen = replace(SEEN, sessions=(*SEEN.sessions, listed("44444444-4444", "vm2", index=5)))
    assert refused("vm2", seen) == (f"vm2 has 2 candidates, name a session: vm2 ({VM2}), vm2 (44444444-4444)")
    assert target(VM2, seen) == VM2


def test_many_candidates_are_named_in_one_bounded_line() -> None:
    many = tuple(listed(f"session-{n}", f"vm{n}", index=n) for n in range(2, 5002))
    why = refused("vm9999", SessionsView((HOLDER, *many)))
    assert why.endswith("vm21 (session-21) and 4980 more") and len(why) < 1000


def test_a_token_that_may_not_read_sessions_is_told_so() -> None:
    """Consul then answers with an empty list."""
    right = RIGHT.removeprefix("to see all nodes, ")
    assert refused("vm2", SessionsView()) == f"Consul does not list the sessions; {right}"
    hidden = refused("vm2", replace(SEEN, sessions=(HOLDER, listed(VM3, "vm3")), filtered=True))
    assert hidden == f"vm2 is no candidate; there are vm3 ({VM3}); {RIGHT}"


def test_a_host_s_name_in_the_name_of_a_session_may_be_another_host_s() -> None:
    seen = SessionsView(
        (
            listed(OURS, "agent", "app on vm1"),
            listed(VM2, "agent", "app on vm2"),
            listed(VM3, "c", "b on vm3"),
        )
    )
    assert target("vm2", seen, "app on vm1") == VM2
    assert refused("vm3", seen, "app on vm1") == f"vm3 is no candidate; there are agent ({VM2})"
    assert refused("vm1", seen, "app on vm1").startswith("vm1 holds it itself")
    assert refused("vm2", seen, "vm1").startswith("vm2 is no candidate"), "any session would match"


@pytest.mark.parametrize(("node", "session"), [("rack7", VM3), ("vm3", VM3), ("VM9", VM2)])
def test_a_host_is_named_as_the_fleet_shows_it_as_well(node: str, session: str) -> None:
    assert target(node, present=FLEET) == session


def test_a_refusal_has_each_name_that_can_be_typed_and_what_the_named_node_does() -> None:
    choices = f"there are vm9 or vm2 ({VM2}), rack7 or vm3 ({VM3})"
    assert refused("rack9", SEEN, NAME, *FLEET) == f"rack9 is no candidate, it is paused; {choices}"
    twice = refused("vm3", SEEN, NAME, told("vm3", "vm2", "waiting"), *FLEET)
    assert twice.startswith("vm3 has 2 candidates, name a session: vm3 or vm9 ")
