"""Lock-delays and sessions after a restart, in Consul and in the model."""

import time

import pytest

from supervisor.devagent.messages import AgentRequest, Answer
from supervisor.devagent.model import Model
from tests.support.consul import Agent, Client

FIRST_S, SECOND_S = 4.0, 60.0  # the delays of the first and the second holder
TURN_S = 0.05


@pytest.mark.long
def test_a_delay_from_before_a_restart_cuts_the_next_one_short(persistent_agent: Agent) -> None:
    """The first holder's 4 s run again from the restart on, and end the second holder's 60 s with them."""
    real = persistent_agent
    first = real.session_create(LockDelay=f"{FIRST_S:g}s")
    assert real.acquire("k", first)
    real.session_destroy(first)
    second, rival = real.session_create(LockDelay=f"{SECOND_S:g}s"), real.session_create()
    acquired(real, second)
    real.kill()
    begun = time.monotonic()
    real.start()
    assert not real.acquire("k", second), "refused, although it holds the key"
    destroyed = time.monotonic()
    real.session_destroy(second)
    acquired(real, rival)
    assert time.monotonic() - begun >= FIRST_S
    assert time.monotonic() - destroyed < SECOND_S, "the second holder's delay was not over by itself"
    assert FIRST_S <= said_by_the_model() < FIRST_S + TURN_S


def acquired(real: Client, session: str) -> None:
    """Send acquires until the delay is over."""
    give_up_at = time.monotonic() + SECOND_S + FIRST_S
    while not real.acquire("k", session):
        assert time.monotonic() < give_up_at
        time.sleep(TURN_S)


def said_by_the_model() -> float:
    """Return how long after the restart the rival gets the key in the model."""
    model = Model()

    def put(path: str, body: str = "", now: float = 0.0) -> bytes:
        answer = model.handle(AgentRequest("PUT", f"/v1{path}", body.encode()), now)
        assert isinstance(answer, Answer)
        return answer.body

    first, second, rival = (
        put("/session/create", f'{{"LockDelay":"{delay_s:g}s"}}')[7:43].decode()
        for delay_s in (FIRST_S, SECOND_S, 0.0)
    )
    assert put(f"/kv/k?acquire={first}") == b"true"
    put(f"/session/destroy/{first}")
    assert put(f"/kv/k?acquire={second}", now=FIRST_S) == b"true"
    model.restart(10.0)
    assert put(f"/kv/k?acquire={second}", now=10.5) == b"false"
    put(f"/session/destroy/{second}", now=11.0)
    after_s = 1.0
    while put(f"/kv/k?acquire={rival}", now=10.0 + after_s) == b"false":
        after_s += TURN_S / 2
    return after_s
