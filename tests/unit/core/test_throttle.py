"""While Consul's rate limits refuse requests, a waiter sends requests less and less often, and a holder does
not wait.
"""

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.beside.throttle import THROTTLED_S_MAX, Throttle
from supervisor.core.frozen import replace
from supervisor.core.machines.session import CREATE_WITHOUT_TTL_RETRY_S
from tests.unit.answers.replies import REQUESTS
from tests.unit.core import play as p

FULL = o.Throttled("429 rate limit exceeded")
RETRY_S = 0.5  # at spread 0, where a throttle pauses for half of its figure


def gaps(play: p.Play, kind: type[r.Request], times: int, outcome: o.Outcome = FULL) -> list[float]:
    """Answer each request of this kind so, and return how long after its answer the next one is sent."""
    found = []
    for _ in range(times):
        answered_at = play.now
        play.on(answered_at, kind, outcome)
        before = len(play.times(kind))
        while len(play.times(kind)) == before:
            play.happens(play.deadline, e.Tick())
        found.append(play.now - answered_at)
    return found


def test_each_refusal_doubles_the_pause_up_to_a_maximum() -> None:
    play = p.beginning()
    waits = gaps(play, p.CREATE, 7)
    assert waits == pytest.approx([RETRY_S + pause / 2 for pause in (1, 2, 4, 8, 16, 16, 16)])
    assert max(waits) < THROTTLED_S_MAX


def test_without_a_ttl_a_refused_create_waits_at_least_as_long_as_an_unanswered_one() -> None:
    play = p.beginning(ttl_s=None)
    assert gaps(play, p.CREATE, 1, p.SILENCE) == pytest.approx([CREATE_WITHOUT_TTL_RETRY_S])
    play.contender = replace(play.contender, spread=0.99)
    waits = gaps(play, p.CREATE, 6)
    assert min(waits) == pytest.approx(CREATE_WITHOUT_TTL_RETRY_S) and max(waits) > THROTTLED_S_MAX


def test_a_refused_read_of_a_waiter_raises_the_level_of_reads() -> None:
    play = p.waiting()
    play.on(0.2, p.WATCH, FULL)
    assert play.contender.throttle.reads == 1 and play.contender.patient_retry_s == RETRY_S + 0.5


def test_an_answer_that_no_lane_awaits_resets_no_level() -> None:
    play = p.waiting()
    play.on(0.2, p.WATCH, FULL)
    late = r.ReadKey("n", 0.1, 1.0, "k")
    play.under_way.append(late)
    play.happens(0.2, e.Answered(late, p.RIVAL))
    assert play.contender.throttle.reads == 1


def test_an_answered_read_does_not_reset_the_level_of_writes() -> None:
    """Consul counts reads and writes apart, so answered reads must not hurry refused attempts."""
    play = p.trying()
    for level in (1, 2, 3):
        play.on(play.now, p.ACQUIRE, FULL)
        assert play.contender.throttle.writes == level
        while p.ACQUIRE not in map(type, play.under_way):
            if p.READ in map(type, play.under_way):
                play.on(play.now, p.READ, p.FREE)
            else:
                play.happens(play.deadline, e.Tick())
    play.on(play.now, p.ACQUIRE, o.LostRace())
    assert play.contender.throttle.writes == 0


def test_silence_does_not_reset_a_level() -> None:
    play = p.beginning()
    play.on(0.1, p.CREATE, FULL)
    play.on(0.1, p.WATCH, p.SILENCE)
    assert play.contender.throttle.writes == 1


def test_a_holder_that_is_refused_goes_on_reading_and_renewing_at_its_pace() -> None:
    """A refused request of a holder is repeated as soon as after any other failure."""
    play = p.holding()
    for kind in (p.READ, p.RENEW):
        while kind not in map(type, play.under_way):
            play.happens(play.deadline, e.Tick())
    assert gaps(play, p.RENEW, 3) == pytest.approx([RETRY_S] * 3)
    assert gaps(play, p.READ, 3) == pytest.approx([RETRY_S] * 3)
    assert gaps(play, p.WATCH, 1) == pytest.approx([RETRY_S])
    assert play.role == "holding" and play.contender.throttle.pause_s(0.0) == 0.0


def test_a_new_holder_watches_although_its_watch_as_a_waiter_was_refused() -> None:
    """A pause that began while the contender waited does not apply to a holder."""
    play = p.beginning()
    play.on(0.1, p.CREATE, o.Created("s"))
    gaps(play, p.WATCH, 4)
    play.on(play.now, p.WATCH, FULL)
    play.hears(play.now, e.Stalled(0.0), "read")
    play.on(play.now, p.READ, p.FREE)
    play.on(play.now, p.ACQUIRE, p.WON)
    won_at, interval_s = play.now, play.contender.lease.interval_s
    while p.WATCH not in map(type, play.under_way):
        play.happens(play.deadline, e.Tick())
    assert play.now <= won_at + interval_s


def test_an_answered_read_of_a_holder_resets_the_level() -> None:
    """A refusal from before the tenure says nothing about the time after it."""
    throttle = p.waiting().contender.throttle.count(r.ReadKey("n", 0.0, 1.0, "k"), FULL, 0.5, holds=False)
    assert throttle.count(r.ReadKey("n", 0.0, 1.0, "k"), p.SILENCE, 0.5, holds=True).reads == 1
    assert throttle.count(r.ReadKey("n", 0.0, 1.0, "k"), FULL, 0.5, holds=True).reads == 1
    assert throttle.count(r.ReadKey("n", 0.0, 1.0, "k"), p.FREE, 0.5, holds=True).reads == 0


def test_a_refused_release_does_not_wait_and_the_destroy_after_it_does() -> None:
    play = p.holding()
    play.happens(1.5, e.StepDownAsked("n", 60.0))
    play.happens(1.6, e.HookEnded(play.last(a.StartHook), ok=True))
    assert gaps(play, p.RELEASE, 3) == pytest.approx([RETRY_S] * 3)
    play.on(play.now, p.RELEASE, o.Done())
    while p.DESTROY not in map(type, play.under_way):
        play.happens(play.deadline, e.Tick())
    assert gaps(play, p.DESTROY, 3) == pytest.approx([RETRY_S + pause / 2 for pause in (1, 2, 4)])


def test_a_release_does_not_wait_although_reads_were_refused() -> None:
    play = p.holding()
    play.contender = replace(play.contender, throttle=Throttle(reads=3))
    play.happens(1.5, e.StepDownAsked("n", 60.0))
    play.happens(1.6, e.HookEnded(play.last(a.StartHook), ok=True))
    assert gaps(play, p.RELEASE, 2) == pytest.approx([RETRY_S] * 2)


def test_a_holder_does_not_wait_although_reads_were_refused() -> None:
    play = p.holding()
    play.contender = replace(play.contender, throttle=Throttle(reads=3))
    while p.READ not in map(type, play.under_way):
        play.happens(play.deadline, e.Tick())
    assert gaps(play, p.READ, 2) == pytest.approx([RETRY_S] * 2)


def test_a_renewal_does_not_wait_although_reads_were_refused() -> None:
    play = p.waiting()
    play.on(0.2, p.WATCH, p.RIVAL)
    play.contender = replace(play.contender, throttle=Throttle(reads=3))
    while p.RENEW not in map(type, play.under_way):
        play.happens(play.deadline, e.Tick())
    assert gaps(play, p.RENEW, 2) == pytest.approx([RETRY_S] * 2)
    assert play.contender.throttle == Throttle(reads=3), "a refused renewal does not count"


def test_refused_contenders_do_not_retry_in_step() -> None:
    throttle = p.waiting().contender.throttle
    for _ in range(3):
        throttle = throttle.count(r.ReadKey("n", 0.0, 1.0, "k"), FULL, 0.5, holds=False)
    assert throttle.pause_s(0.0) == 2.0 and throttle.pause_s(0.99) == pytest.approx(5.96)


def test_reads_of_a_waiter_that_run_out_of_time_become_rare_up_to_a_low_level() -> None:
    """An agent holds what its servers refuse for 7 s, and no read waits for that long."""
    throttle, read = Throttle(), r.ReadKey("n", 0.0, 1.0, "k")
    levels = []
    for _ in range(4):
        throttle = throttle.count(read, p.SILENCE, 1.0, holds=False)
        levels.append(throttle.reads)
    assert levels == [1, 2, 2, 2]
    assert replace(throttle, reads=4).count(read, p.SILENCE, 1.0, holds=False).reads == 4
    assert throttle.count(read, p.SILENCE, 0.9, holds=False) == throttle, "the connection was refused"
    assert throttle.count(read, p.FREE, 1.0, holds=False).reads == 0
    assert Throttle().count(read, p.SILENCE, 1.0, holds=True) == Throttle()
    for urgent in (r.RenewSession, r.Release, r.Acquire):
        request = next(each for each in REQUESTS if type(each) is urgent)
        assert Throttle().count(request, p.SILENCE, 9.0, holds=False) == Throttle()


DROPPED = o.Dropped("500 rpc error making call: EOF")


def is_repeated_at_once(play: p.Play, kind: type[r.Request]) -> bool:
    play.on(play.now, kind, DROPPED)
    return kind in map(type, play.under_way)


def test_a_renewal_that_was_dropped_is_repeated_at_once_and_only_once_in_a_row() -> None:
    play = p.holding()
    for _ in range(2):
        while p.RENEW not in map(type, play.under_way):
            play.happens(play.deadline, e.Tick())
        assert is_repeated_at_once(play, p.RENEW)
        assert gaps(play, p.RENEW, 2, DROPPED) == pytest.approx([RETRY_S] * 2)
        play.on(play.now, p.RENEW, o.SessionAlive())


@pytest.mark.parametrize("ends", [e.StepDownAsked("n", 60.0), e.StopAsked()])
def test_a_release_that_was_dropped_is_repeated_at_once_even_when_the_process_ends(ends: e.Event) -> None:
    """Without the repeat the destroy would follow, and the lock-delay would keep the next holder waiting."""
    play = p.holding()
    play.happens(1.5, ends)
    play.happens(1.6, e.HookEnded(play.last(a.StartHook), ok=True))
    assert is_repeated_at_once(play, p.RELEASE)
    play.on(play.now, p.RELEASE, o.Done())
    while p.DESTROY not in map(type, play.under_way):
        play.happens(play.deadline, e.Tick())
    assert is_repeated_at_once(play, p.DESTROY)


def test_an_attempt_that_was_dropped_is_repeated_after_a_read_at_once() -> None:
    play = p.waiting()
    play.does(0.2, p.WATCH, p.FREE, "acquire s, watch 5")
    play.on(0.3, p.ACQUIRE, DROPPED)
    play.on(0.3, p.READ, p.FREE)
    assert p.ACQUIRE in map(type, play.under_way)
