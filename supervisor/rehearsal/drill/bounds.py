"""How long each wait, each play and a whole item may take. Pure functions of the settings."""

from collections.abc import Iterable

from supervisor.core.lease import lease_of
from supervisor.core.settings import Hook, ItemSettings
from supervisor.rehearsal.drill.promises import ALLOWANCE_S

START_S = 30.0  # for three supervisors to start on a busy machine, and for their sessions
RETRY_DELAY_MAX_S = 30.0  # a delay between attempts doubles up to this
STOP_S = 10.0
WITHOUT_TTL_S = 2.0  # how long the drill looks on while no TTL frees the lock
STUCK_S = 1.0  # how long the drill looks on while a stuck node keeps the lock
REST_S = 1.0  # of step-down
COMMAND_S = 10.0
MACHINE_S = 2 * (START_S + COMMAND_S + STOP_S)  # of each play: what a busy machine may need, hooks left out


def hooks_s(hooks: Iterable[Hook]) -> float:
    """Return how long these hooks take at most, with all their attempts."""
    total_s = 0.0
    for hook in hooks:
        total_s += (hook.retries + 1) * hook.attempt_s
        delays = (hook.retry_delay_s * 2.0**number for number in range(hook.retries))
        total_s += sum(min(delay_s, RETRY_DELAY_MAX_S) for delay_s in delays)
    return total_s


def hold_s(item: ItemSettings) -> float:
    """Return how long it takes at most until a free lock is held, from the start of the supervisors."""
    check = item.candidate_check
    attempt_s = 0.0 if item.check_hook is None else item.check_hook.attempt_s
    check_s = 0.0 if check is None else check.rise * (check.interval_s + attempt_s)
    return START_S + check_s + lease_of(item).acquire_delay_s + hooks_s(item.on_acquire)


def acquire_s(item: ItemSettings) -> float:
    """Return how long it takes at most until a node that Consul shows as holder holds."""
    return hooks_s(item.on_acquire) + 2 * ALLOWANCE_S


def lose_s(item: ItemSettings) -> float:
    """Return how long losing takes at most while Consul answers, with all attempts."""
    run_s = 0.0 if item.run is None else item.run.stop_timeout_s
    return run_s + hooks_s(item.on_lose) + hooks_s(item.on_lose_failure) + lease_of(item).lose_time_s


def failover_s(item: ItemSettings) -> float:
    """Return how long the drill waits for another holder after a crash, or after a destroy without a TTL."""
    lease = lease_of(item)
    ended_s = WITHOUT_TTL_S if lease.ttl_s is None else 2 * lease.ttl_s
    return ended_s + free_s(item) + guard_s(item) + 2 * ALLOWANCE_S


def free_s(item: ItemSettings) -> float:
    """Return how long after the end of a session another node has the lock at the latest."""
    lease = lease_of(item)
    return lease.key_delay_s + lease.acquire_delay_s


def fence_s(item: ItemSettings) -> float:
    """Return how long a fence that works keeps the node waiting that has acquired. 0: there is none."""
    return 0.0 if item.fence is None else item.fence.after_s + item.fence.hook.attempt_s


def guard_s(item: ItemSettings) -> float:
    """Return how long a node that has acquired waits at most. With ``required`` its fence works."""
    wait_s = lease_of(item).wait_s
    return fence_s(item) if wait_s is None else wait_s


def outage_s(item: ItemSettings) -> float:
    """Return how long Consul may be silent without a loss, by ``fence.outage``. 0: the file has none."""
    return item.outage_s or 0.0


def play_s(item: ItemSettings) -> float:
    """Return how long one play takes at most, with MACHINE_S."""
    once_s = 2 * hold_s(item) + 3 * lose_s(item) + item.rejoin_delay_s + REST_S + STUCK_S
    return once_s + outage_s(item) + failover_s(item) + hooks_s(item.on_acquire) + 2 * COMMAND_S + 2 * STOP_S
