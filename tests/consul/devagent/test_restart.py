"""Lock-delays after a restart of Consul; test_model.py has those of the model."""

import time

import pytest

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


def acquired(real: Client, session: str) -> None:
    """Send acquires until the delay is over."""
    give_up_at = time.monotonic() + SECOND_S + FIRST_S
    while not real.acquire("k", session):
        assert time.monotonic() < give_up_at
        time.sleep(TURN_S)
