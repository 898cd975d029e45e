"""The walks: for each part of the protocol, the settings and the exchanges that put it to the test.

A full product of all hostilities is too large; the LONG walks combine two of them each. The spans are small
and meet on the walks' grid: ttl, room and lock-delay still differ.
"""

from dataclasses import dataclass, replace
from typing import Any

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.actions import EMPTY_RECORD, Role
from supervisor.core.claim.claim import Standing
from supervisor.core.lease import lose_terms, margin_of
from supervisor.core.machines.session import Stage
from supervisor.core.machines.tenure import Phase
from supervisor.core.settings import (
    CandidateCheck,
    Command,
    ElectionSettings,
    Fence,
    Hook,
    Run,
    ServiceSettings,
    SessionSettings,
    Watchdog,
)
from tests.models.adversary import FENCED_KEY

ROOM_S = 3.0


@dataclass(frozen=True)
class Walk:
    """One part of the protocol that is put to the test.

    hostile: exchanges of these kinds end in every way at any time, the others well and at once. StartHook
        among them stands for hooks and the run child.
    shows: roles, classes of events, outcomes and actions, and edges (before, after) of the state machines
        that must occur.
    stop: whether a stop may be requested at any time.
    steps_max: a limit of events from the start. None: until nothing new is found.
    as_holder: whether the walk starts where sane answers lead.
    record: the record of an earlier process.
    """

    name: str
    settings: ElectionSettings
    hostile: frozenset[type]
    shows: frozenset[object] = frozenset()
    stop: bool = True
    steps_max: int | None = None
    as_holder: bool = False
    record: a.Record = EMPTY_RECORD


def hook(name: str, *, timeout_s: float = 1.0, retries: int = 0, kill_after_s: float = 0.0) -> Hook:
    """Return a hook of whole seconds, which ends on the grid."""
    return Hook(name, Command(("true",), kill_after_s=kill_after_s), timeout_s, retries, 1.0)


def election(
    *, lock_delay_s: float | None = None, ttl_s: float | None = 3.0, room_s: float = ROOM_S, **more: Any
) -> ElectionSettings:
    """Return settings with a lock-delay that leaves ``room_s``, unless another is given."""
    base: dict[str, Any] = {"name": "n", "key": "k", "value": b"me", "rejoin_delay_s": 1.0, **more}
    settings = ElectionSettings(session=SessionSettings("n"), **base)
    if lock_delay_s is None:
        lose_time_s = sum(seconds for _, seconds in lose_terms(settings))
        lock_delay_s = room_s + lose_time_s + margin_of(room_s + lose_time_s)
    return ElectionSettings(session=SessionSettings("n", ttl_s=ttl_s, lock_delay_s=lock_delay_s), **base)


def two(name: str, *, retries: int = 0) -> tuple[Hook, ...]:
    return (hook(f"{name} 1", retries=retries), hook(f"{name} 2"))


UP, DOWN, OFF = (hook("up"),), (hook("down"),), (hook("off"),)
HOOKS: dict[str, Any] = {"on_acquire": UP, "on_lose": DOWN}
CHECK = CandidateCheck(hook("check"), interval_s=2.0, rise=2, fall=2)
MAINTENANCE = CandidateCheck(None, interval_s=2.0, maintenance=True)
SERVICE = ServiceSettings("id", "leader")
SERVICE_REQUESTS = (r.ReadService, r.RegisterService, r.PassService, r.FailService, r.DeregisterService)
WATCHDOG = Watchdog("/dev/watchdog", 4.0)
FENCE = Fence(hook("fence", retries=1), target="here", after_s=1.0, exclusive=True)
RUN = Run(Command(("true",)), stop_timeout_s=1.0)


def walk(
    name: str,
    *hostile: type,
    shows: tuple[object, ...] = (),
    stop: bool = True,
    steps_max: int | None = None,
    as_holder: bool = False,
    record: a.Record = EMPTY_RECORD,
    **more: Any,
) -> Walk:
    settings, hostilities = election(**more), frozenset(hostile)
    return Walk(name, settings, hostilities, frozenset(shows), stop, steps_max, as_holder, record)


def left(step: a.Point, **more: Any) -> a.Record:
    """Return the record of a process that crashed a second ago."""
    return a.Record(step, "k", "s", 7, 3, 1, -1.0, leader=b"me", **more)


REQUESTS = {kind for kind in vars(r).values() if isinstance(kind, type) and issubclass(kind, r.Request)}
EVERYTHING = (*REQUESTS, a.StartHook, a.WriteRecord)
ALL_HOOKS = {**HOOKS, "on_change": (hook("told"),), "on_lose_failure": OFF, "run": RUN}
# fmt: off
WALKS = (
    walk("watchdog", e.WatchdogTried, r.ReadKey, **HOOKS, watchdog=WATCHDOG,
         shows=(a.Arm, e.WatchdogTried, Role.INELIGIBLE)),
    walk("watchdog and run", e.WatchdogTried, a.StartHook, run=RUN, watchdog=WATCHDOG, shows=(a.StartRun,)),
    walk("watchdog after a crash", e.WatchdogTried, r.RenewSession, **HOOKS, watchdog=WATCHDOG,
         record=left(a.Point.TENURE)),
    walk("observer", r.WatchKey, a.StartHook, contend=False, on_change=(hook("told", retries=1),),
         shows=(r.WatchKey, a.KillHook, e.Tick, Role.OBSERVER)),
    walk("sessions", r.CreateSession, r.RenewSession,
         shows=(r.CreateSession, r.RenewSession, o.Created, o.Refused, o.Ineligible, o.Throttled,
                o.SessionAlive, o.SessionAltered, o.Dropped, o.SessionGone, Role.INELIGIBLE,
                (Stage.ABSENT, Stage.CREATING), (Stage.CREATING, Stage.ABSENT),
                (Stage.CREATING, Stage.LIVE), (Stage.LIVE, Stage.DESTROYING))),
    walk("tries", r.Acquire, r.ReadKey,
         shows=(r.Acquire, r.ReadKey, o.Won, o.LockDelayed, o.LostRace, o.Unknown, o.Denied, Role.WAITING)),
    walk("delays", r.Acquire, r.ReadKey, r.ReadSession, stop=False, shows=(r.ReadSession, o.SessionInfo)),
    walk("watched tries", r.Acquire, r.WatchKey, stop=False),
    walk("writes", r.Acquire, r.Release, r.DestroySession, a.StartHook, **HOOKS,
         shows=(a.PrepareWrite, r.Release, r.DestroySession, o.Done, e.StopAsked, a.Finished, a.RoleChanged,
                Role.STOPPED, (Stage.LIVE, Stage.RELEASING), (Stage.RELEASING, Stage.DESTROYING),
                (Stage.DESTROYING, Stage.ABSENT))),
    walk("reads", r.ReadKey, a.StartHook, **HOOKS,
         shows=(e.Answered, o.KeyView, e.HookEnded, a.StartHook, Role.ACQUIRING, Role.HOLDING, Role.LOSING,
                (Phase.ACQUIRING, Phase.HOLDING), (Phase.ACQUIRING, Phase.STOPPING),
                (Phase.HOLDING, Phase.STOPPING), (Phase.STOPPING, Phase.LOSING),
                (Phase.LOSING, Phase.LOST))),
    walk("watch", r.WatchKey, a.StartHook, **HOOKS, stop=False),
    walk("renewals", r.RenewSession, a.StartHook, **HOOKS, shows=(Role.STUCK, (Phase.LOSING, Phase.STUCK))),
    walk("reads and renewals", r.ReadKey, r.RenewSession, **HOOKS, stop=False),
    walk("run", r.ReadKey, a.StartHook, **HOOKS, run=RUN, shows=(a.StartRun, a.StopRun, e.RunEnded)),
    walk("run and renewals", r.RenewSession, a.StartHook, **HOOKS, run=RUN),
    walk("keep", r.ReadKey, a.StartHook, **HOOKS, run=RUN, acquire_failure="keep"),
    walk("two hooks", r.ReadKey, a.StartHook, on_acquire=two("up"), on_lose=two("down")),
    walk("slow kill", r.ReadKey, a.StartHook,
         on_acquire=(hook("up", retries=1, kill_after_s=1.0),), on_lose=DOWN),
    walk("lose failure", r.ReadKey, a.StartHook, on_lose=DOWN, on_lose_failure=OFF,
         shows=((Phase.LOSING, Phase.LAST_RESORT), (Phase.LAST_RESORT, Phase.LOST),
                (Phase.LAST_RESORT, Phase.STUCK))),
    walk("old news", r.ReadKey, a.StartHook, on_lose=DOWN, room_s=4.0, run=RUN,
         on_acquire=(hook("slow", timeout_s=3.0), hook("up"))),
    walk("retries", r.ReadKey, a.StartHook, on_lose=two("down", retries=1), on_lose_failure=OFF),
    walk("no lock-delay", r.ReadKey, a.StartHook, **HOOKS, lock_delay_s=0.0, accept_overlap=True),
    walk("shortest ttl", r.ReadKey, r.Acquire, a.StartHook, **HOOKS,
         ttl_s=1.0, lock_delay_s=0.0, accept_overlap=True),
    walk("rare reads", r.ReadKey, a.StartHook, **HOOKS, room_s=4.0, confirm_every_s=2.0),
    walk("frequent reads", r.ReadKey, r.RenewSession, **HOOKS, room_s=2.0, confirm_every_s=0.5, stop=False),
    walk("no ttl", r.ReadKey, a.StartHook, **HOOKS, ttl_s=None),
    walk("records", a.WriteRecord, r.Acquire, a.StartHook, **HOOKS,
         shows=(a.WriteRecord, e.RecordWritten, (Phase.STOPPING, Phase.LOST), (Stage.LIVE, Stage.ABSENT))),
    walk("pauses", r.ReadKey, a.StartHook, e.PauseAsked, e.ResumeAsked, **HOOKS, stop=False,
         shows=(e.PauseAsked, e.ResumeAsked, Role.PAUSED)),
    walk("a node that may try by word alone", r.ReadKey, r.Acquire, e.PauseAsked, e.PauseOver, e.ResumeAsked,
         **HOOKS, manual=True, stop=False,
         shows=(e.PauseOver, e.ResumeAsked, r.Acquire, Role.WAITING, Role.HOLDING)),
    walk("orders for the whole fleet", r.ReadKey, r.Acquire, e.OrderSeen, **HOOKS, stop=False,
         shows=(e.OrderSeen, r.Acquire, Role.WAITING, Role.PAUSED, Role.HOLDING)),
    walk("recoveries", a.StartHook, r.ReadKey, e.RecoverAsked, **HOOKS,
         shows=(e.RecoverAsked, (Phase.STUCK, Phase.LOST))),
    walk("another file", e.SettingsChanged, r.Rewrite, **HOOKS, stop=False,
         shows=(e.SettingsChanged, r.Rewrite)),
    walk("another file, reads", e.SettingsChanged, r.ReadKey, **HOOKS, stop=False),
    walk("another file, records", e.SettingsChanged, a.WriteRecord, **HOOKS, stop=False),
    walk("another file, adoption", e.SettingsChanged, r.RenewSession, **HOOKS, stop=False,
         record=left(a.Point.HOLDING)),
    walk("another file while losing", e.SettingsChanged, a.StartHook, **HOOKS, stop=False),
    walk("dropped", e.ItemRemoved, r.Release, r.DestroySession, a.StartHook, **HOOKS,
         shows=(e.ItemRemoved, (Stage.RELEASING, Stage.ABSENT))),
    walk("stepping down", e.StepDownAsked, r.ReadKey, a.StartHook, **HOOKS,
         shows=(e.StepDownAsked, Role.RESTING)),
    walk("handing over", e.StepDownAsked, r.WatchKey, acquire_delay_s=1.0, stop=False),
    walk("rests", e.StepDownAsked, e.ResumeAsked, e.PauseAsked, a.StartHook, **HOOKS, stop=False,
         shows=(e.ResumeAsked, Role.RESTING, Role.PAUSED)),
    walk("standing still", r.ReadKey, a.StartHook, e.Stalled, **HOOKS, run=RUN, shows=(e.Stalled,)),
    walk("check", a.StartHook, **HOOKS, candidate_check=CHECK, shows=(Role.INELIGIBLE,)),
    walk("hooks that cannot start", e.HooksChecked, r.Acquire, r.ReadKey, **HOOKS,
         shows=(e.HooksChecked, a.CannotStart, Role.INELIGIBLE)),
    walk("hooks that cannot start, adoption", e.HooksChecked, r.ReadKey, **HOOKS,
         record=left(a.Point.HOLDING)),
    walk("hooks that cannot start, another file", e.HooksChecked, e.SettingsChanged, **HOOKS, stop=False),
    walk("maintenance", r.ReadMaintenance, a.StartHook, **HOOKS, candidate_check=MAINTENANCE,
         shows=(r.ReadMaintenance, o.InMaintenance, Role.INELIGIBLE)),
    walk("maintenance and check", r.ReadMaintenance, a.StartHook, **HOOKS, stop=False,
         candidate_check=replace(CHECK, maintenance=True)),
    walk("maintenance, adoption", r.ReadMaintenance, **HOOKS, candidate_check=MAINTENANCE,
         record=left(a.Point.HOLDING)),
    walk("service", *SERVICE_REQUESTS, service=SERVICE, stop=False,
         shows=(*SERVICE_REQUESTS[:3], o.Instance, a.NoticeChanged)),
    walk("service, losing", r.RegisterService, r.DeregisterService, e.StepDownAsked, **HOOKS,
         service=SERVICE, stop=False, shows=(r.FailService, r.DeregisterService)),
    walk("service, servers", r.FailService, r.FindService, e.StepDownAsked, service=SERVICE, stop=False,
         shows=(r.FindService, a.NoticeChanged)),
    walk("service, adoption", r.ReadService, on_lose=DOWN, service=SERVICE, stop=False,
         record=left(a.Point.HOLDING)),
    walk("check, reads", r.ReadKey, **HOOKS, run=RUN, candidate_check=CHECK),
    walk("check, adoption", a.StartHook, **HOOKS, candidate_check=CHECK, record=left(a.Point.HOLDING)),
    walk("adoption", r.ReadKey, r.RenewSession, **HOOKS, run=RUN, record=left(a.Point.HOLDING),
         shows=((Phase.ADOPTING, Phase.HOLDING), (Phase.ADOPTING, Phase.STOPPING))),
    walk("adoption, on_adopt", r.ReadKey, a.StartHook, **HOOKS, on_adopt="acquire",
         record=left(a.Point.HOLDING), shows=((Phase.ADOPTING, Phase.ACQUIRING),)),
    walk("adoption of a beginning", r.ReadKey, a.StartHook, **HOOKS, run=RUN, record=left(a.Point.TENURE)),
    walk("a crash in on_lose", r.ReadKey, a.StartHook, **HOOKS, record=left(a.Point.LOSING)),
    walk("a foreign record", r.ReadKey, r.RenewSession, **HOOKS, record=left(a.Point.HOLDING, foreign=True)),
    walk("a session on record", r.Release, r.DestroySession, **HOOKS, record=left(a.Point.SESSION)),
    walk("stuck on record", r.RenewSession, e.RecoverAsked, **HOOKS, record=left(a.Point.STUCK)),
    walk("fence, looks", r.WatchTenure, r.MarkTenure, fence=FENCE, stop=False,
         shows=(r.WatchTenure, r.MarkTenure, o.TenureShown)),
    walk("fence, tries", r.Acquire, r.ReadKey, fence=FENCE, stop=False, shows=(o.RecordExists,)),
    walk("fence, hints", r.HintKey, r.WatchKey, fence=FENCE, stop=False, steps_max=10,
         shows=(r.HintKey, o.Hinted)),
    walk("fence, guard", r.WatchTenure, a.StartHook, r.Acquire, e.ConfirmOffAsked, fence=FENCE, stop=False,
         shows=(e.ConfirmOffAsked, (Phase.GUARDING, Phase.ACQUIRING))),
    walk("fence, guard and reads", r.WatchTenure, r.WatchKey, r.ReadKey, fence=FENCE, steps_max=6,
         shows=((Phase.GUARDING, Phase.STOPPING),)),
    walk("fence, guard and reads alone", r.WatchTenure, r.ReadKey, fence=FENCE),
    walk("no fence, over a record", r.WatchKey, r.WatchTenure, r.Acquire, key=FENCED_KEY, steps_max=8,
         shows=((Standing.UNSEEN, Standing.OWING),)),
    walk("fence, losing", r.ReadKey, r.MarkTenure, a.StartHook, **HOOKS, fence=FENCE),
    walk("fence, settling", r.Acquire, r.DestroySession, r.MarkTenure, r.WatchTenure, fence=FENCE,
         shows=((Standing.UNSEEN, Standing.CLEAR), (Standing.CLEAR, Standing.OWING),
                (Standing.OWING, Standing.SETTLING), (Standing.SETTLING, Standing.CLEAR),
                (Standing.OWING, Standing.CLEAR), (Standing.CLEAR, Standing.UNSEEN))),
    walk("fence, after a crash", r.ReadKey, r.WatchTenure, a.StartHook, **HOOKS, fence=FENCE, steps_max=12,
         record=left(a.Point.HOLDING, owes=True), shows=((Standing.SETTLING, Standing.OWING),)),
    walk("fence, hooks after a crash", r.ReadKey, a.StartHook, **HOOKS, fence=FENCE,
         record=left(a.Point.HOLDING, owes=True)),
    walk("a process that outlives KILL", e.SurvivorsChanged, a.StartHook, e.RecoverAsked, **HOOKS, run=RUN,
         shows=(e.SurvivorsChanged, (Phase.LOST, Phase.STUCK))),
    walk("a process that outlives KILL, reads", e.SurvivorsChanged, r.ReadKey, **HOOKS, run=RUN),
    walk("a process that outlives KILL, renewals", e.SurvivorsChanged, r.RenewSession, **HOOKS, run=RUN),
    walk("a process that outlives KILL, watchdog", e.SurvivorsChanged, r.ReadKey, e.ItemRemoved, **HOOKS,
         watchdog=WATCHDOG, stop=False),
    walk("a process that outlives KILL, fence", e.SurvivorsChanged, r.ReadKey, r.MarkTenure, **HOOKS,
         fence=FENCE),
    walk("everything", *EVERYTHING, **ALL_HOOKS, steps_max=5),
    walk("everything as holder", *EVERYTHING, **ALL_HOOKS, steps_max=4, as_holder=True),
)
LONG: tuple[Walk, ...] = (
    walk("long: everything", *EVERYTHING, **ALL_HOOKS, steps_max=6),
    walk("long: holder", *EVERYTHING, **ALL_HOOKS, steps_max=6, as_holder=True),
    walk("long: reads, renewals", r.ReadKey, r.RenewSession, a.StartHook, **HOOKS),
    walk("long: watch, renewals", r.WatchKey, r.RenewSession, **HOOKS, stop=False),
    walk("long: watch, stop", r.WatchKey, a.StartHook, **HOOKS),
    walk("long: tries, watch", r.Acquire, r.ReadSession, r.WatchKey, stop=False),
    walk("long: handing over", e.StepDownAsked, r.WatchKey, r.Acquire, stop=False, steps_max=7),
    walk("long: retries", r.ReadKey, r.RenewSession, a.StartHook,
         on_lose=two("down", retries=1), on_lose_failure=OFF),
    walk("long: service, reads", r.ReadKey, r.RegisterService, on_lose=DOWN, service=SERVICE, stop=False),
    walk("long: service, adoption", r.ReadKey, r.ReadService, on_lose=DOWN, service=SERVICE, stop=False,
         record=left(a.Point.HOLDING)),
    walk("long: no ttl", r.ReadKey, r.RenewSession, a.StartHook, **HOOKS, ttl_s=None),
)
# fmt: on
