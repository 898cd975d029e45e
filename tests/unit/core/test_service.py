"""``service``: the lane that names this node in Consul while it holds."""

from dataclasses import replace

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.beside.service import AGAIN_S, LEFT_S, LOOK_TTLS, NAMED_S, TTL_INTERVALS
from supervisor.core.lease import lease_of
from supervisor.core.settings import ServiceSettings
from tests.unit.core import play as p

SERVICE = ServiceSettings("consul-supervisor:host:n", "leader", 5432)
TTL_S = TTL_INTERVALS * lease_of(p.contender()).interval_s
LOOK, REGISTER, PASS, DEREGISTER = r.ReadService, r.RegisterService, r.PassService, r.DeregisterService
FAIL, FIND = r.FailService, r.FindService
RECORD = a.Record(a.Point.HOLDING, "k", "s", 7, 3, 2, -1.0, leader=b"me")


def holding(found: o.Instance = o.Instance.ABSENT) -> p.Play:
    """The node holds since 1.0, and has just asked whether the id is free."""
    play = p.Play(p.contender(service=SERVICE))
    play.happens(0.0, e.Tick())
    play.on(0.1, LOOK, found)
    play.on(0.1, p.CREATE, o.Created("s"))
    play.on(0.2, p.WATCH, p.FREE)
    play.on(0.3, p.ACQUIRE, p.WON)
    assert not any(isinstance(each, r.ServiceRequest) for each in play.under_way)
    assert "holding, read service" in p.Play.says(
        play.happens(1.0, e.HookEnded(play.last(a.StartHook), ok=True))
    )
    return play


def named() -> p.Play:
    """The node is registered since 1.2."""
    play = holding()
    assert p.Play.says(play.on(1.1, LOOK, o.Instance.ABSENT)) == "register service"
    assert play.on(1.2, REGISTER, o.Done()) == [] and play.contender.service.is_registered
    return play


def contact(play: p.Play) -> list[a.Action]:
    """Answer the holder's next read, and return what follows."""
    while not any(isinstance(request, p.READ) for request in play.under_way):
        play.happens(play.deadline, e.Tick())
    return play.on(play.now, p.READ, p.OURS)


def lost(play: p.Play, now: float) -> None:
    """The node steps down, and the first act is to ask the agent whose instance it has."""
    assert p.Play.says(play.happens(now, e.StepDownAsked("n", 60.0))).startswith("read service, start down")


def unnamed(play: p.Play, servers: o.Instance = o.Instance.LEFT) -> None:
    """The agent has the instance, lets its check fail, and the servers show that."""
    assert p.Play.says(play.on(play.now, LOOK, o.Instance.OURS)) == "fail service"
    assert p.Play.says(play.on(play.now, FAIL, o.Done())) == "find service"
    assert p.Play.says(play.on(play.now, FIND, servers)) == "deregister service"


def left(play: p.Play) -> None:
    """The node has deregistered its instance, and the servers keep it."""
    lost(play, 2.0)
    unnamed(play)
    assert p.Play.says(play.on(2.2, DEREGISTER, o.Done())) == "find service"
    (notice,) = play.on(2.2, FIND, o.Instance.LEFT)
    assert isinstance(notice, a.NoticeChanged) and "acl.tokens.agent" in notice.notice


def test_the_check_lasts_for_three_intervals() -> None:
    play = named()
    request = play.pending(REGISTER)
    assert isinstance(request, REGISTER)
    assert (request.service, request.ttl_s, request.passing) == (SERVICE, TTL_S, True)


def test_the_check_passes_without_a_contact_as_long_as_the_node_believes() -> None:
    play = named()
    while not play.times(PASS):
        play.happens(play.deadline, e.Tick())
    assert play.times(PASS) == [1.2 + TTL_S / 2]


def test_the_name_goes_first_of_all_and_is_looked_for_twice_more() -> None:
    """A frozen agent may apply the registration late."""
    play = named()
    lost(play, 2.0)
    unnamed(play)
    assert p.Play.says(play.on(2.2, DEREGISTER, o.Done())) == "find service"
    assert play.on(2.2, FIND, o.Instance.ABSENT) == []
    play.passes(2.2 + AGAIN_S)
    assert play.times(LOOK)[-1] == 2.2 + AGAIN_S


def test_a_name_that_was_being_registered_goes_with_the_answer() -> None:
    play = holding()
    play.on(1.1, LOOK, o.Instance.ABSENT)
    assert "service" not in p.Play.says(play.happens(1.2, e.StepDownAsked("n", 5.0)))
    assert p.Play.says(play.on(1.3, REGISTER, o.Done())) == "read service"
    unnamed(play)


@pytest.mark.parametrize("agent", [o.Done(), o.Instance.UNKNOWN], ids=["a check", "no check"])
@pytest.mark.parametrize("servers", [o.Instance.LEFT, o.Instance.ABSENT, o.Instance.UNKNOWN])
def test_the_agent_keeps_the_instance_until_no_server_names_it(agent: o.Outcome, servers: o.Instance) -> None:
    """An agent answers before its servers do, where they are lost, or lose its write."""
    play = named()
    lost(play, 2.0)
    play.on(2.0, LOOK, o.Instance.OURS)
    play.on(2.0, FAIL, agent)
    assert play.on(2.0, FIND, p.SILENCE) == []
    play.happens(2.0 + AGAIN_S, e.Tick())
    assert "notice" in p.Play.says(play.on(play.now, FIND, o.Instance.NAMED)) and not play.times(DEREGISTER)
    play.happens(play.now + NAMED_S, e.Tick())
    again = play.last(REGISTER)
    assert isinstance(again, REGISTER) and not again.passing
    assert "fail service" in p.Play.says(play.on(play.now, REGISTER, o.Done()))
    play.on(play.now, FAIL, o.Done())
    assert "deregister service" in p.Play.says(play.on(play.now, FIND, servers))


def test_what_the_servers_keep_is_noticed_until_it_is_gone() -> None:
    play = named()
    left(play)
    play.happens(2.2 + LEFT_S, e.Tick())
    assert play.times(FIND)[-1] == 2.2 + LEFT_S
    assert "notice" not in p.Play.says(play.on(play.now, FIND, p.SILENCE))
    play.happens(play.now + AGAIN_S, e.Tick())
    assert "no notice" in p.Play.says(play.on(play.now, FIND, o.Instance.ABSENT))


@pytest.mark.parametrize("outcome", [p.SILENCE, o.Failed("500")], ids=["silence", "500"])
def test_a_registration_without_an_answer_is_looked_for(outcome: o.Outcome) -> None:
    """It may be applied yet, so its absence is to be seen twice."""
    play = holding()
    play.on(1.1, LOOK, o.Instance.ABSENT)
    play.on(1.2, REGISTER, outcome)
    assert not play.contender.service.is_registered
    lost(play, 1.5)
    play.on(1.6, LOOK, o.Instance.ABSENT)
    play.passes(1.6 + AGAIN_S)
    assert play.times(LOOK)[-1] == 1.6 + AGAIN_S
    play.passes(30.0)
    assert play.times(LOOK)[-1] == 1.6 + AGAIN_S and not play.times(DEREGISTER)


@pytest.mark.parametrize("loses", [False, True], ids=["holding", "losing"])
def test_an_instance_with_another_token_is_registered_anew(loses: bool) -> None:
    """The agent tells of it only with the token of the registration, which Consul must still know."""
    play = named()
    if loses:
        lost(play, 2.0)
    else:
        contact(play)
        assert p.Play.says(play.on(play.now, PASS, o.Instance.UNKNOWN)) == "read service"
    assert "register service" in p.Play.says(play.on(play.now, LOOK, o.Instance.FORMER))
    request = play.pending(REGISTER)
    assert isinstance(request, REGISTER) and request.passing is not loses
    assert p.Play.says(play.on(play.now, REGISTER, o.Done())) == ("fail service" if loses else "")


def test_an_id_that_another_program_takes_over_is_noticed_and_left_alone() -> None:
    play, after = named(), 1.2 + LOOK_TTLS * TTL_S
    while "pass service" in p.Play.says(contact(play)) and play.now < after + TTL_S:
        play.on(play.now, PASS, o.Done())
    assert after <= play.now == play.times(LOOK)[-1] < after + TTL_S
    assert "notice" in p.Play.says(play.on(play.now, LOOK, o.Instance.FOREIGN))
    play.happens(play.now, e.StepDownAsked("n", 60.0))
    play.passes(play.now + 30.0)
    assert play.times(DEREGISTER) == []


@pytest.mark.parametrize("outcome", [p.FORBIDDEN, o.Refused("400")], ids=["403", "400"])
def test_a_registration_that_is_refused_was_not_made(outcome: o.Outcome) -> None:
    play = holding()
    play.on(1.1, LOOK, o.Instance.ABSENT)
    play.on(1.2, REGISTER, outcome)
    assert "read service" in p.Play.says(contact(play))


def test_an_instance_of_another_program_is_left_alone_and_reported() -> None:
    play = holding()
    (notice,) = play.on(1.1, LOOK, o.Instance.FOREIGN)
    assert isinstance(notice, a.NoticeChanged) and f"-id={SERVICE.id}`" in notice.notice
    assert "read service" in p.Play.says(contact(play))
    assert "no notice" in p.Play.says(play.on(play.now, LOOK, o.Instance.ABSENT))
    assert len(play.times(REGISTER)) == 1


def test_what_an_earlier_life_left_is_removed() -> None:
    play = p.Play(p.contender(service=SERVICE))
    play.happens(0.0, e.Tick())
    unnamed(play)
    assert p.Play.says(play.on(0.2, DEREGISTER, p.FORBIDDEN)) == ""
    play.passes(0.2 + AGAIN_S)
    assert play.times(LOOK)[-1] == 0.2 + AGAIN_S


def test_an_adopted_tenure_takes_the_instance_over() -> None:
    settings = p.contender(service=SERVICE)
    play = p.Play(settings, RECORD, recorded=settings)
    play.happens(0.0, e.Tick())
    assert play.times(LOOK) == [] and play.deadline > 0.0
    play.on(0.1, r.RenewSession, o.SessionAlive())
    play.on(0.1, p.READ, p.OURS)
    assert play.role == "holding" and play.times(LOOK) == [0.1]
    assert p.Play.says(play.on(0.2, LOOK, o.Instance.OURS)) == "register service"


def test_a_tenure_that_is_not_adopted_ends_with_its_name() -> None:
    settings = p.contender(service=SERVICE)
    play = p.Play(settings, RECORD, recorded=settings)
    play.happens(0.0, e.Tick())
    assert "read service" in p.Play.says(play.happens(0.1, e.StopAsked()))
    unnamed(play)


def test_a_reload_changes_the_instance() -> None:
    play = named()
    moved = replace(SERVICE, port=6432)
    play.happens(2.0, e.SettingsChanged("n", p.contender(service=moved)))
    play.on(2.0, LOOK, o.Instance.OURS)
    request = play.last(REGISTER)
    assert play.times(REGISTER)[-1] == 2.0 and request.service == moved
    play.on(2.1, REGISTER, o.Done())
    play.happens(3.0, e.SettingsChanged("n", p.contender()))
    unnamed(play)
    assert play.times(DEREGISTER) == [3.0] and play.role == "holding"


def test_the_stop_waits_for_no_answer_about_the_service() -> None:
    play = named()
    play.happens(2.0, e.StopAsked())
    play.happens(2.1, e.HookEnded(play.last(a.StartHook), ok=True))
    play.under_way.remove(play.pending(LOOK))
    play.passes(3.0)
    assert play.role == "stopped" and play.times(DEREGISTER) == []
