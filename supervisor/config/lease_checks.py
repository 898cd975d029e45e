"""Rules between the times of one election or semaphore, and what they rely on outside of the file.

``supervisor.core.lease`` has the safety arithmetic. This module only puts its results into words.
"""

import math
from collections.abc import Mapping, Sequence

from supervisor.config.formats.durations import format_duration
from supervisor.config.notification import UNIT_WATCHDOG_S
from supervisor.config.problems import KeyPath, Report
from supervisor.core.frozen import dataclass
from supervisor.core.lease import (
    MARGIN_SHARE,
    ROOM_MIN_S,
    Lease,
    lease_of,
    lockout_max_s,
    lose_terms,
    sufficient_lockout_s,
)
from supervisor.core.settings import ElectionSettings, Fence, ItemSettings, Watchdog

TTL_MIN_S = 10.0  # Consul's default session_ttl_min
SAYS_S = 1.0  # within which a former holder that lives and reaches Consul has said that it is stopping
SILENCE_SPARE_S = 0.5  # beyond a change of Consul's leader, because none takes equally long twice

# With the unit that is shipped, a supervisor that hangs runs again after the sum of these and of WatchdogSec.
# A start that hangs does so no later, because RestartSec and TimeoutStartSec are no longer than WatchdogSec.
RESTART_S = 1.0  # RestartSec
START_S = 1.0  # Python, the file and the records

UNLIMITED_MAX = 10  # elections with fence: so many may have led on several machines
READS_MAX = 20.0  # a second by one node; two such nodes load the leading server as a hundred usual holders do
_OVERLAP = "or accept that both may act at once (accept_overlap: true)"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The facts that the times of a file rely on, and that no key of an item decides."""

    leader_change_s: float  # how long a change of the leader of Consul's servers takes
    unit_watchdog_s: float = UNIT_WATCHDOG_S  # the unit's WatchdogSec
    start_timeout_s: float = 0.0  # the unit's TimeoutStartSec. 0: not known, but short enough

    @property
    def silence_s(self) -> float:
        """The silence that a file should tolerate."""
        return self.leader_change_s + SILENCE_SPARE_S


def check_lease(settings: ItemSettings, path: KeyPath, report: Report, around: Surroundings) -> None:
    """Report times that leave no room, and warn of what a short time costs."""
    session = settings.session
    if session.ttl_s is None and settings.accept_overlap:
        report.refuse((*path, "accept_overlap"), "cannot be true with ttl: none: give the session a TTL")
        return
    lease = lease_of(settings)
    guard = (*path, "session", "lock_delay") if settings.kind == "election" else (*path, "prune_delay")
    if lease.room_s < ROOM_MIN_S and not settings.accept_overlap:
        report.refuse(guard, _no_room(settings, around))
        return
    if 2 * (settings.confirm_every_s or 0.0) > lease.room_s:
        report.refuse((*path, "session", "confirm_every"), _rare_reads(settings))
        return
    if settings.watchdog is not None:
        left_s, text = watchdog_sum(settings, settings.watchdog)
        if settings.accept_overlap:
            message = "cannot be true where a watchdog guards: set watchdog: false here as well"
            report.refuse((*path, "accept_overlap"), message)
        elif left_s < 0:
            guards = range(math.ceil(settings.lockout_s), int(lockout_max_s(settings)) + 1)
            enough = [each for each in guards if watchdog_sum(settings, settings.watchdog, each)[0] >= 0]
            longer = f"set {enough[0]}s or more, or " if enough else ""
            remedy = f"{longer}shorten the timeout by {format_duration(-left_s)}"
            report.refuse(guard, f"leaves no time for the watchdog: {text}: {remedy}")
    if settings.fence is not None:
        _check_fence(settings, settings.fence, path, report)
    if lease.silence_s < around.silence_s and settings.outage_s is None:
        report.warn(guard, _little_silence(settings, around))
    if return_s(settings, around) > settings.lockout_s and not settings.accept_overlap:
        report.warn(guard, _late_return(settings, around))
    if 0 < lease.key_delay_s <= lease.acquire_delay_s:
        report.warn((*path, "acquire_delay"), _little_preference(settings))
    if settings.kind == "semaphore" and session.behavior == "release":
        message = "the key of a contender that vanishes stays below the prefix: use delete, which removes it"
        report.warn((*path, "session", "behavior"), message)
    if session.ttl_s is not None and session.ttl_s < TTL_MIN_S:
        message = f"below {format_duration(TTL_MIN_S)} Consul refuses it unless its session_ttl_min allows it"
        report.warn((*path, "session", "ttl"), message)


def _check_fence(settings: ItemSettings, fence: Fence, path: KeyPath, report: Report) -> None:
    if settings.accept_overlap:
        message = "cannot be true with fence, which counts on an end within lock_delay: remove one of the two"
        report.refuse((*path, "accept_overlap"), message)
    if settings.session.behavior == "delete":
        message = "cannot be delete with fence, because a deleted key keeps no program away: set release"
        report.refuse((*path, "session", "behavior"), message)
    outage = (*path, "fence", "outage")
    if fence.outage_s is not None and not fence.exclusive:
        report.refuse(
            outage, "needs exclusive: true, because nothing but fence outlasts lock_delay: set both"
        )
    elif fence.outage_s is not None and settings.run is not None:
        message = (
            "a supervisor that starts again while Consul is silent does not start run before Consul is back"
        )
        report.warn(outage, f"{message}: let on_acquire start the application, or accept that")
    after, after_s = (*path, "fence", "after"), fence.after_s
    if after_s < SAYS_S:
        message = "a former leader that lives may be switched off before it can say that it is stopping"
        report.warn(after, f"{message}: set {format_duration(SAYS_S)} or more")
    if after_s >= lease_of(settings).asked_s and not fence.required:
        message = "the fence never begins, because this node acts without it after lock_delay"
        report.warn(after, f"{message}: set less than {format_duration(settings.lockout_s)}")
    if fence.required:
        remedy = "make sure that someone can run confirm-off, or remove required"
        message = f"while the fence fails, no node acts after a crash, however long that lasts: {remedy}"
        report.warn((*path, "fence", "required"), message)


def check_fences(elections: Sequence[ItemSettings], report: Report) -> None:
    """Warn of a machine that would be shot twice, and of a bad day without a limit."""
    fenced = [each for each in elections if each.contend and each.fence is not None]
    first = next((each.fence for each in fenced), None)
    if first is None:
        return
    for each in fenced:
        if each.fence and (each.fence.target, each.fence.methods) != (first.target, first.methods):
            both = f"{each.name} and {fenced[0].name} have different fences, so a machine that leads both"
            remedy = "is switched off twice: give them one, in defaults"
            report.warn(("elections", each.name, "fence"), f"{both} {remedy}")
            break
    if len(fenced) > UNLIMITED_MAX and first.limit is None:
        message = f"{len(fenced)} elections have fence, and nothing limits how many machines it switches off"
        report.warn(("elections", fenced[-1].name, "fence"), f"{message}: set fence_limit: {{machines: 2}}")


def lease_on_record(settings: ItemSettings) -> Lease:
    """Return the lease of a tenure whose record says all that the file asks for."""
    return lease_of(settings, leased_s=lease_of(settings).asked_s)


def outage_sum(settings: ItemSettings) -> str:
    """Return the sum of how long others wait for a holder by its tenure record."""
    lease = lease_of(settings)
    terms = {"2 x interval": lease.interval_s, "lose_time": lease.lose_time_s}
    terms = {"outage": settings.outage_s or 0.0} | terms
    return f"{format_duration(lease.asked_s)} = ({_added(terms)}) / {1 - MARGIN_SHARE:g}"


def _no_room(settings: ItemSettings, around: Surroundings) -> str:
    lease = lease_of(settings)
    room_s, least_s = format_duration(lease.room_s), format_duration(ROOM_MIN_S)
    return (
        f"cannot end on_lose before another node may {_hold(settings)}: room would be {room_sum(settings)} "
        f"= {room_s}, at least {least_s} are needed: {_roomier(settings, around)}"
    )


def _hold(settings: ItemSettings) -> str:
    return "hold the key" if settings.kind == "election" else "have the slot"


def room_sum(settings: ItemSettings) -> str:
    """Return the sum of the room: lock_delay or prune_delay, less the margin and each term of lose_time."""
    lease = lease_of(settings)
    terms = [(settings.lockout_name, lease.lockout_s), ("margin", lease.margin_s), *lose_terms(settings)]
    return " - ".join(f"{what} {format_duration(length_s)}" for what, length_s in terms)


def _roomier(settings: ItemSettings, around: Surroundings) -> str:
    what, enough_s = settings.lockout_name, sufficient_lockout_s(settings, ROOM_MIN_S)
    if enough_s is None:
        longest = format_duration(lockout_max_s(settings))
        return f"no {what} up to {longest} is enough, shorten the timeouts, {_OVERLAP}"
    enough = f"{enough_s}s or more{_quiet_from(settings, around, enough_s)}"
    return f"set {what} to {enough}, shorten the timeouts, {_OVERLAP}"


def _quiet_from(settings: ItemSettings, around: Surroundings, enough_s: int) -> str:
    """Return the least lock_delay or prune_delay about which nothing is left to warn, where another is named.

    Blank: none is long enough.
    """
    for_silence_s = sufficient_lockout_s(settings, ROOM_MIN_S, around.silence_s)
    if for_silence_s is None:
        return ""
    quiet_s = max(for_silence_s, math.ceil(return_s(settings, around)))
    is_other = quiet_s not in (enough_s, 0) and quiet_s <= lockout_max_s(settings)
    return f" ({quiet_s}s ends each warning about it)" if is_other else ""


def return_s(settings: ItemSettings, around: Surroundings) -> float:
    """Return how long a supervisor that hangs may take until its on_lose has ended."""
    return sum(_return_terms(settings, around).values())


def _return_terms(settings: ItemSettings, around: Surroundings) -> dict[str, float]:
    back = {"WatchdogSec": around.unit_watchdog_s, "RestartSec": RESTART_S, "start": START_S}
    if RESTART_S + around.start_timeout_s > around.unit_watchdog_s:  # of a process that was killed
        back = {"RestartSec": RESTART_S, "TimeoutStartSec": around.start_timeout_s}
        back |= {"RestartSec again": RESTART_S, "start": START_S}
    return {**back, "lose_time": lease_of(settings).lose_time_s}


def _late_return(settings: ItemSettings, around: Surroundings) -> str:
    length_s, terms = return_s(settings, around), _return_terms(settings, around)
    added = _added(terms)
    late, guard = format_duration(length_s - settings.lockout_s), format_duration(settings.lockout_s)
    return (
        f"if this supervisor hangs, on_lose may end {late} after another node may {_hold(settings)}, because "
        f"{added} exceeds {settings.lockout_name} {guard}: set {math.ceil(length_s)}s, shorten the timeouts, "
        f"or lower {'TimeoutStartSec' if 'TimeoutStartSec' in terms else 'WatchdogSec'} in a drop-in"
    )


def watchdog_sum(
    settings: ItemSettings, watchdog: Watchdog, lockout_s: float | None = None
) -> tuple[float, str]:
    """Return the time that is left where a process that is killed feeds on after its restart, and the sum.

    The newest contact may be one interval and one exchange old when the process is killed.
    lockout_s: how long rivals wait. None: as long as in the file.
    """
    lease = lease_of(settings, lockout_s)
    restart = {"RestartSec": RESTART_S, "start": START_S, "timeout": watchdog.timeout_s}
    terms = {"interval": lease.interval_s, "exchange": lease.exchange_s, **restart}
    needs_s, has_s = sum(terms.values()), lease.lockout_s - lease.margin_s / 2
    limit = f"{settings.lockout_name} - margin/2 {format_duration(has_s)}"
    return has_s - needs_s, f"{_added(terms)} = {format_duration(needs_s)} of {limit}"


def _added(terms: Mapping[str, float]) -> str:
    return " + ".join(f"{what} {format_duration(term_s)}" for what, term_s in terms.items())


def _little_preference(settings: ItemSettings) -> str:
    """Return the consequence of a try that comes when the lock-delay of a crashed holder is over already."""
    lease = lease_of(settings)
    kept = format_duration(lease.key_delay_s)
    lead_s = format_duration(lease.acquire_delay_s - lease.key_delay_s)
    return (
        f"after a crash this node leaves the key to others for {lead_s} only, because its first try comes "
        f"after the lock_delay: set less than {kept}, or {kept} plus the time to leave"
    )


def _little_silence(settings: ItemSettings, around: Surroundings) -> str:
    what, enough_s = settings.lockout_name, sufficient_lockout_s(settings, ROOM_MIN_S, around.silence_s)
    too_short = f"no {what} is long enough for that, shorten the timeouts"
    remedy = f"set {enough_s}s to tolerate that" if enough_s else too_short
    silence = format_duration(max(0.0, lease_of(settings).silence_s))
    takes = f"whose change of leader takes {format_duration(around.leader_change_s)}"
    return f"tolerates {silence} without an answer from Consul, {takes}: {remedy}"


def _rare_reads(settings: ItemSettings) -> str:
    """Return why a holder cannot read so rarely: a read must be able to fail once before belief ends."""
    room_s = lease_of(settings).room_s
    room, most = format_duration(room_s), format_duration(math.floor(5 * room_s) / 10)
    what = f"cannot be longer than half the room of {room}, because one unanswered read would be a loss"
    return f"{what}: set {most} or less, or a larger {settings.lockout_name}"


def others_of(settings: ItemSettings, items: Sequence[ItemSettings]) -> int:
    """Return how many other items count for the busy_delay of this one. 0: it has none."""
    if not isinstance(settings, ElectionSettings) or not settings.busy_delay_s:
        return 0
    return sum(each.contend and settings.group in ("", each.group) for each in items) - 1


def check_spread(items: Sequence[ItemSettings], report: Report) -> None:
    """Warn of a busy_delay with which the node that holds most may be the first after a crash."""
    for settings in items:
        if not (others := others_of(settings, items)) or not isinstance(settings, ElectionSettings):
            continue
        kept_s = lease_of(settings).key_delay_s
        if settings.busy_delay_s * others > kept_s > 0:
            least = format_duration(math.floor(100 * kept_s / others) / 100)
            message = (
                "after a crash a node that holds most of the other locks may be the first, because Consul "
                f"refuses each try in the first {format_duration(kept_s)}: set {least} or less"
            )
            report.warn((f"{settings.kind}s", settings.name, "busy_delay"), message)
            return


def check_reads(items: Sequence[ItemSettings], report: Report) -> None:
    """Warn of many elections and semaphores that each confirm their lock often."""
    often = [each for each in items if each.contend and each.confirm_every_s is not None]
    reads = sum(1 / lease_of(each).interval_s for each in often)
    if reads > READS_MAX:
        message = (
            f"{len(often)} items have a confirm_every, so this node sends up to {reads:.0f} reads a second "
            "while it holds them all: leave it out where a failover may take longer. In a file with more "
            "than 64 elections, those with keys that begin alike share reads"
        )
        first = often[0]
        report.warn((f"{first.kind}s", first.name, "session", "confirm_every"), message)
