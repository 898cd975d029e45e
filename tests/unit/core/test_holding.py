"""How a holder learns that it has lost the lock: which news is a loss, why, and when a rival may hold."""

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from tests.unit.core import play as p

RELEASED = o.KeyView(9, None, b"me", 3, 9, 2)
DELETED = o.KeyView(9)
PUT = o.KeyView(9, "s", b"them", 3, 9, 0)
OVERWRITTEN = "notice: another program has written over the value by which this node is named"
CONTACT = 0.2


def lose_context(play: p.Play) -> a.HookContext:
    context: a.HookContext = play.last(a.StartHook).context
    assert context.event == "lose"
    return context


# --- the cadence of news ----------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [p.SILENCE, p.FORBIDDEN], ids=["silence", "403"])
def test_a_failed_read_is_repeated_soon(outcome: o.Outcome) -> None:
    play = p.holding()
    play.does(3.2, "read")
    play.does(3.3, "renew s")
    play.does(3.4, p.READ, outcome, "")
    play.does(3.9, "read")


def test_the_renewal_waits_for_no_read_and_the_read_for_no_renewal() -> None:
    play = p.holding()
    play.does(3.2, "read")
    play.does(3.3, "renew s")
    play.does(3.4, p.READ, p.OURS, "")
    play.does(6.2, "read")


# --- silence ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ttl_s", [9.0, None])
def test_belief_ends_one_room_after_the_last_contact_and_not_sooner(ttl_s: float | None) -> None:
    play = p.holding(ttl_s=ttl_s)
    play.passes(CONTACT + p.ROOM_S - 0.01, silent=True)
    assert play.role == "holding"
    play.passes(CONTACT + p.ROOM_S, silent=True)
    assert play.role == "losing"
    assert lose_context(play).reason == "lease-expired"
    assert lose_context(play).rival_at == pytest.approx(CONTACT + 30.0)


def test_a_contact_counts_from_when_the_read_was_sent() -> None:
    play = p.holding()
    play.does(3.2, "read")
    play.on(5.9, p.READ, p.OURS)
    play.passes(3.2 + p.ROOM_S - 0.01, silent=True)
    assert play.role == "holding"
    play.passes(3.2 + p.ROOM_S, silent=True)
    assert play.role == "losing"


def test_renewals_keep_the_session_and_do_not_extend_belief() -> None:
    play = p.holding()
    while play.deadline < CONTACT + p.ROOM_S:
        play.happens(play.deadline, e.Tick())
        for request in [each for each in play.under_way if not isinstance(each, p.WATCH)]:
            outcome = o.SessionAlive() if isinstance(request, p.RENEW) else p.SILENCE
            play.happens(play.now, e.Answered(request, outcome))
    assert play.role == "holding"
    play.happens(CONTACT + p.ROOM_S, e.Tick())
    assert lose_context(play).reason == "lease-expired"


def test_belief_ends_before_an_answer_that_comes_too_late_is_considered() -> None:
    play = p.holding()
    play.does(3.2, "read")
    assert play.on(CONTACT + p.ROOM_S, p.READ, p.OURS)[0] == play.last(a.StartHook)
    assert lose_context(play).reason == "lease-expired"


def test_a_watch_that_is_not_consistent_is_no_contact() -> None:
    play = p.acquiring(on_acquire=())
    play.does(2.0, p.WATCH, p.OURS, "watch 7 consistently")
    play.passes(CONTACT + p.ROOM_S, silent=True)
    assert play.role == "losing"


def test_a_consistent_watch_is_a_contact() -> None:
    play = p.holding()
    play.on(20.0, p.WATCH, p.OURS)
    play.passes(1.0 + p.ROOM_S - 0.01, silent=True)
    assert play.role == "holding"
    play.passes(1.0 + p.ROOM_S, silent=True)
    assert play.role == "losing"


def test_an_answer_to_an_older_request_does_not_move_the_contact_back() -> None:
    """The watch was sent at 1.0, and the read at 3.2."""
    play = p.holding()
    play.does(3.2, "read")
    play.on(3.3, p.READ, p.OURS)
    play.on(3.4, p.WATCH, o.KeyView(8, "s", b"put", 3, 8, 0))
    play.passes(3.2 + p.ROOM_S - 0.01, silent=True)
    assert play.role == "holding"


# --- Consul says that the key is not ours -------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown", "renewal", "reason", "rival_at"),
    [
        (RELEASED, o.SessionAlive(), "released-by-operator", 2.0),
        (RELEASED, o.SessionGone(), "session-invalidated", CONTACT + 30.0),
        (DELETED, o.SessionAlive(), "key-deleted", 2.0),
        (p.RIVAL, o.SessionAlive(), "released-by-operator", 2.0),
        (p.RIVAL, o.SessionGone(), "session-invalidated", 2.0),
    ],
    ids=["released", "destroyed", "deleted", "a rival's", "a rival's and destroyed"],
)
def test_on_lose_waits_a_moment_for_the_reason_of_the_loss(
    shown: o.KeyView, renewal: o.Outcome, reason: str, rival_at: float
) -> None:
    """The key is lost in any case, and the state of its session decides which reason the hook gets.

    The lock-delay of a session that has ended guards the key, unless a rival has it. The role changes at
    once, and it is reported once, with its reason.
    """
    play = p.holding()
    begun = p.Play.says(play.on(2.0, p.WATCH, shown))
    assert begun.removesuffix(", info rival") == "renew s, watch 9 consistently"
    assert (play.role, reported_reasons(play)) == ("losing", [])
    play.does(2.1, p.RENEW, renewal, f"start down#1: {reason}, losing")
    assert reported_reasons(play) == [("losing", reason)]
    context = lose_context(play)
    assert context.rival_at == rival_at
    assert (context.leader, context.previous_leader) == (shown.leader, b"me")


def test_on_lose_waits_a_quarter_of_a_second_for_the_reason_at_most() -> None:
    play = p.holding()
    play.does(2.0, p.WATCH, RELEASED, "renew s, watch 9 consistently")
    assert play.deadline == 2.25
    play.does(2.25, "start down#1: lock-gone, losing")


def test_a_renewal_sent_before_the_loss_gives_no_reason() -> None:
    """The renewal was sent before the loss, so on_lose waits for the next one."""
    play = p.holding()
    play.does(3.2, "read")
    play.does(3.3, "renew s")
    play.does(3.4, p.WATCH, RELEASED, "watch 9 consistently")
    play.does(3.5, p.RENEW, o.SessionAlive(), "renew s")
    play.does(3.55, p.RENEW, o.SessionGone(), "start down#1: session-invalidated, losing")


def reported_reasons(play: p.Play) -> list[tuple[str, str]]:
    """Return each role that log and status got since the node held, with its reason."""
    became = [action for _, action in play.log if isinstance(action, a.RoleChanged)]
    told = [(str(action.role), str(action.reason)) for action in became]
    return told[told.index(("holding", "acquired")) + 1 :]


def test_a_reason_learned_before_on_lose_begins_is_reported_again() -> None:
    """The run child takes its time to end, so on_lose begins later."""
    play = p.holding(run=p.RUN)
    play.on(2.0, p.WATCH, RELEASED)
    play.hears(2.3, e.Tick(), "losing")
    play.does(2.4, p.RENEW, o.SessionGone(), "losing")
    assert reported_reasons(play) == [("losing", "lock-gone"), ("losing", "session-invalidated")]


@pytest.mark.parametrize("hooks", [{"on_acquire": (), "on_lose": ()}, {"on_lose": ()}], ids=["none", "up"])
def test_a_loss_without_a_hook_reports_its_reason(hooks: dict[str, tuple[()]]) -> None:
    play = p.holding(**hooks)
    play.passes(p.LOCK_DELAY_S, silent=True)
    assert reported_reasons(play) == [("losing", "lease-expired"), ("waiting", "")]


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(o.KeyView(9, "s", b"me", 8, 9, 1), id="re-created"),
        pytest.param(o.KeyView(9, "s", b"me", 3, 9, 3), id="LockIndex grew"),
    ],
)
def test_a_key_that_was_acquired_again_in_between_is_a_loss(view: o.KeyView) -> None:
    """A rival may have held the key in between."""
    play = p.holding()
    play.on(2.0, p.WATCH, view)
    assert play.role == "losing"


def test_a_plain_put_over_the_key_is_no_loss() -> None:
    """A plain PUT sets LockIndex to 0, and the tenure goes on with its token."""
    play = p.holding()
    play.does(2.0, p.WATCH, PUT, f"rewrite s, watch 9 consistently, {OVERWRITTEN}")
    play.does(3.2, "read")
    play.does(3.3, p.READ, PUT, "renew s")
    assert play.role == "holding"


def test_a_read_overtaken_by_the_watch_of_a_plain_put_is_no_loss() -> None:
    """The ModifyIndex decides which answer is older, and the larger LockIndex does not."""
    play = p.holding()
    play.does(3.2, "read")
    play.does(3.25, p.WATCH, PUT, f"rewrite s, watch 9 consistently, {OVERWRITTEN}")
    play.does(3.3, p.READ, p.OURS, "renew s")
    assert play.role == "holding"


def test_a_watch_overtaken_by_the_read_of_a_plain_put_is_no_loss() -> None:
    play = p.holding()
    play.does(3.2, "read")
    play.does(3.25, p.READ, PUT, f"rewrite s, {OVERWRITTEN}")
    play.does(3.3, p.WATCH, p.OURS, "renew s, watch 7 consistently, no notice")
    assert play.role == "holding"


def test_a_read_sent_before_the_tenure_cannot_contradict_it() -> None:
    play = p.trying()
    play.does(4.6, "renew s")
    play.does(4.7, p.RENEW, p.SILENCE, "")
    play.does(5.2, "renew s")
    play.does(5.3, p.RENEW, o.SessionAlive(), "read")
    play.does(5.4, p.ACQUIRE, p.WON, "start up#1: acquired, acquiring")
    play.does(5.5, p.READ, p.FREE, "read")
    assert play.role == "acquiring"


# --- the session dies -----------------------------------------------------------------------------------


def test_a_holder_whose_session_is_reported_dead_reads_the_key_before_it_gives_up() -> None:
    """A server that has just restarted may answer 404 for a living session, so a consistent read decides."""
    play = p.holding()
    play.does(3.2, "read")
    play.does(3.3, "renew s")
    play.does(3.35, p.READ, p.OURS, "")
    play.does(3.4, p.RENEW, o.SessionGone(), "read")
    play.does(3.5, p.READ, p.OURS, "")
    assert play.role == "holding"
    play.does(3.9, "renew s")
    play.does(4.0, p.RENEW, o.SessionAlive(), "read")
    assert play.role == "holding"


def test_a_dead_session_is_a_loss_once_the_key_shows_it() -> None:
    play = p.holding()
    play.does(3.2, "read")
    play.does(3.3, "renew s")
    play.does(3.35, p.READ, p.OURS, "")
    play.does(3.4, p.RENEW, o.SessionGone(), "read")
    play.does(3.5, p.READ, RELEASED, "renew s")
    play.does(3.6, p.RENEW, o.SessionGone(), "start down#1: session-invalidated, losing")
    assert lose_context(play).rival_at == pytest.approx(3.2 + 30.0)
    play.ends(5.0, "release s, waiting")
    play.on(5.1, p.RELEASE, o.Done())
    play.does(5.4, "destroy s")
    play.does(5.5, p.DESTROY, o.Done(), "create")


# --- the delay after a loss ------------------------------------------------------------------------------


def next_create(play: p.Play, lost_at: float) -> float:
    """Play until on_acquire runs again, and return the time from the loss to the next session."""
    play.passes(lost_at + 1.0)
    while play.contender.lock.view != RELEASED:
        play.on(play.now, p.WATCH, RELEASED)
    play.passes(lost_at + 301.0)
    assert play.role == "acquiring"
    return min(at for at in play.times(p.CREATE) if at > lost_at) - lost_at


def fail_to_acquire(play: p.Play) -> float:
    play.happens(play.now, e.HookEnded(play.last(a.StartHook), ok=False))
    return next_create(play, play.now)


def test_each_failed_on_acquire_doubles_the_delay_up_to_five_minutes() -> None:
    play = p.acquiring(on_lose=())
    delays = [fail_to_acquire(play) for _ in range(7)]
    assert delays == pytest.approx([10, 20, 40, 80, 160, 300, 300], abs=0.1)


def exit_of_run(play: p.Play, after_s: float) -> float:
    play.happens(play.now, e.HookEnded(play.last(a.StartHook), ok=True))
    play.passes(play.now + after_s)
    play.happens(play.now, e.RunEnded(play.last(a.StartRun)))
    return next_create(play, play.now)


def test_ten_minutes_of_holding_reset_the_delay_after_a_loss() -> None:
    play = p.acquiring(on_lose=(), run=p.RUN)
    delays = [
        fail_to_acquire(play),
        exit_of_run(play, 590.0),
        exit_of_run(play, 601.0),
        fail_to_acquire(play),
    ]
    assert delays == pytest.approx([10, 20, 10, 20], abs=0.1)
