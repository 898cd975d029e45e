"""A play: one election, and a script in which each line gives it an event and checks the actions that follow.

    play.on(0.1, CREATE, o.Created("s"))          # the answer to the newest request of that kind
    play.does(0.2, WATCH, FREE, "acquire s, watch 5")

Times are seconds from the start. The figures of ``contender``: the TTL is 9, so a waiter renews every 4.5 s
and a holder every 3 s. Interval and exchange are 3 s, so news is fresh for 6 s. The lock-delay is 30, the
margin 1.5 and on_lose 5, so belief ends 23.5 s after the last contact.
"""

from typing import Any

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as req
from supervisor.core.actions import EMPTY_RECORD
from supervisor.core.contender.creation import new_contender
from supervisor.core.contender.state import Contender
from supervisor.core.contender.step import step
from supervisor.core.contenders import Contenders
from supervisor.core.frozen import replace
from supervisor.core.settings import Command, ElectionSettings, Hook, ItemSettings, Run, SessionSettings

CREATE, RENEW, DESTROY, INFO = req.CreateSession, req.RenewSession, req.DestroySession, req.ReadSession
ACQUIRE, RELEASE, READ, WATCH = req.Acquire, req.Release, req.ReadKey, req.WatchKey
SILENCE = o.Unknown("no answer")
FORBIDDEN = o.Denied("Permission denied")
FREE = o.KeyView(5, None, b"last", 3, 5, 1)
ABSENT = o.KeyView(6)
OURS = o.KeyView(7, "s", b"me", 3, 7, 2)
WON = o.Won(3, 7, 2)
RIVAL = o.KeyView(9, "rival", b"them", 3, 9, 3)
ROOM_S, LOCK_DELAY_S = 23.5, 30.0


def hook(name: str, timeout_s: float = 5.0, *, retries: int = 0, kill_after_s: float = 0.0) -> Hook:
    return Hook(name, Command(("true",), kill_after_s=kill_after_s), timeout_s, retries)


UP, DOWN = hook("up"), hook("down")
RUN = Run(Command(("true",)), stop_timeout_s=5.0)


def contender(
    *, ttl_s: float | None = 9.0, lock_delay_s: float = LOCK_DELAY_S, **more: Any
) -> ElectionSettings:
    hooks = {"on_acquire": (UP,), "on_lose": (DOWN,)}
    session = SessionSettings("ours", ttl_s=ttl_s, lock_delay_s=lock_delay_s)
    return ElectionSettings("n", "k", b"me", session, **{**hooks, **more})


class Play:
    """One election, and all that it has begun.

    log: every action ever begun, with its time, except those of the two fields below and the renewal that
        verifies a new session.
    prepared: the writes that were only prepared.
    records: the records that were written.
    disk_full: no record can be written.
    refused: how many records could not be written.
    verifies: the renewal that verifies a new session is answered at once.
    hurries: no attempt is answered while it is young, so the watch that waits for that is begun at once.
    under_way: the requests without an answer, except hints.
    hints: the hints that a waiter with a fence has asked for, of which the newest may have no answer.
    """

    def __init__(
        self,
        settings: ItemSettings,
        record: a.Record = EMPTY_RECORD,
        now: float = 0.0,
        recorded: ItemSettings | None = None,
    ) -> None:
        self.contender: Contender = new_contender(
            settings, spread=0.0, instance="i", record=record, recorded=recorded, now=now
        )
        self.records: list[a.Record] = []
        self.verifies = True
        self.hurries = True
        self.disk_full = False
        self.refused = 0
        self.log: list[tuple[float, a.Action]] = []
        self.under_way: list[req.Request] = []
        self.prepared: list[req.Request] = []
        self.hints: list[req.HintKey] = []
        self.now = 0.0

    # --- events -------------------------------------------------------------------------------

    def does(self, now: float, *line: Any) -> None:
        """Give an event, and check the actions that follow.

        line: a kind of request and its outcome, or nothing for a tick; then the expected actions in words.
        """
        *happens, expected = line
        event = e.Answered(self.pending(happens[0]), happens[1]) if happens else e.Tick()
        self._expect(self.happens(now, event), expected)

    def on(self, now: float, kind: type[req.Request], outcome: o.Outcome) -> list[a.Action]:
        """Answer the newest request of this kind, and return the actions that follow."""
        return self.happens(now, e.Answered(self.pending(kind), outcome))

    def ends(self, now: float, expected: str, *, ok: bool = True, began: bool = True) -> None:
        """End the hook of the tenure that runs.

        began: False: the hook could not be started.
        """
        started = self.last(a.StartHook)
        self._expect(self.happens(now, e.HookEnded(started, ok and began, began=began)), expected)

    def hears(self, now: float, event: e.Event, expected: str) -> None:
        """Give any event, and check the actions that follow."""
        self._expect(self.happens(now, event), expected)

    def happens(self, now: float, event: e.Event) -> list[a.Action]:
        """Give any event, and return the actions that follow."""
        assert now >= self.now, "time runs backwards"
        self.now = now
        begun = self._verified(event, self._turn(event, now), now)
        if self.hurries and self.contender.lock.watch.due_at == self.contender.session.quiet_until:
            begun += self._turn(e.Tick(), self.contender.session.quiet_until)
        if isinstance(event, e.Answered) and not isinstance(event.request, req.HintKey):
            self.under_way.remove(event.request)
        self.under_way += [action for action in begun if isinstance(action, req.Request)]
        self.prepared += [action.request for action in begun if isinstance(action, a.PrepareWrite)]
        done: list[a.Action] = [action for action in begun if not isinstance(action, a.PrepareWrite)]
        self.log += [(now, action) for action in done]
        return done

    def _verified(self, event: e.Event, begun: list[a.Action], now: float) -> list[a.Action]:
        """Answer the renewal of a session that was just created: the session is as requested."""
        created = isinstance(event, e.Answered) and isinstance(event.outcome, o.Created)
        shows = [action for action in begun if isinstance(action, req.RenewSession)]
        if not created or not shows or not self.verifies:
            return begun
        rest = [action for action in begun if action not in shows]
        return rest + self._turn(e.Answered(shows[0], o.SessionAlive()), now)

    def _turn(self, event: e.Event, now: float) -> list[a.Action]:
        """Take one step, and write each record at once, as the driver does."""
        self.contender, begun = step(self.contender, event, now)
        self.hints += [action for action in begun if isinstance(action, req.HintKey)]
        done: list[a.Action] = []
        done += [action for action in begun if not isinstance(action, a.WriteRecord | req.HintKey)]
        for write in begun:
            if isinstance(write, a.WriteRecord):
                why_not = "no space left" if self.disk_full else ""
                self.refused += bool(why_not)
                if not why_not:
                    self.records.append(write.record)
                done += self._turn(e.RecordWritten(write, why_not), now)
        return done

    def passes(self, until: float, *, silent: bool = False, lost_before: float = 0.0) -> None:
        """Let time go by, step by step.

        silent: Consul answers no request, except by a time-out. False: it answers each request at once.
        lost_before: a request that was sent before this time gets no answer.
        """
        while True:
            ends = {
                r.at + r.timeout_s if silent or r.at < lost_before else r.at: r
                for r in reversed(self.under_way)
                if not isinstance(r, req.Watch)
            }
            now = max(min([self.contender.deadline, *ends]), self.now)
            if now > until:
                return
            if ends and now == max(min(ends), self.now):
                request = ends[min(ends)]
                lost = silent or request.at < lost_before
                self.happens(now, e.Answered(request, SILENCE if lost else self._sane(request)))
            else:
                self.happens(now, e.Tick())

    def _sane(self, request: req.Request) -> o.Outcome:
        tenure = self.contender.tenure
        match request:
            case req.CreateSession():
                return o.Created("s")
            case req.RenewSession():
                return o.SessionAlive()
            case req.Acquire():
                return WON
            case req.ReadSession():
                return o.SessionInfo(15.0)
            case req.ReadMaintenance():
                return o.InMaintenance(self.contender.maintenance.why)
            case req.ReadService():
                known = self.contender.service.registered is not None
                return o.Instance.OURS if known else o.Instance.ABSENT
            case req.ReadSlots():
                return self.contender.lock.view or o.SlotsView(5)
            case req.ReadKey():
                view = self.contender.lock.view or ABSENT
                if tenure is None or not isinstance(view, o.KeyView):
                    return FREE if tenure is None else view
                return replace(view, value=tenure.leader) if view.session else view
            case _:
                return o.Done()

    # --- what has begun ------------------------------------------------------------------------

    def pending(self, kind: type[req.Request]) -> req.Request:
        """Return the newest request of this kind."""
        request: req.Request = self.last(kind)
        return request

    def last(self, kind: type[Any]) -> Any:
        """Return the newest action of this kind."""
        return next(action for _, action in reversed(self.log) if isinstance(action, kind))

    def times(self, kind: type[Any]) -> list[float]:
        """Return when actions of this kind were begun."""
        return [now for now, action in self.log if isinstance(action, kind)]

    @property
    def role(self) -> str:
        return self.contender.role

    @property
    def deadline(self) -> float:
        return self.contender.deadline

    @staticmethod
    def says(actions: list[a.Action]) -> str:
        """Return these actions in words."""
        return ", ".join(map(text, actions))

    @staticmethod
    def _expect(actions: list[a.Action], expected: str) -> None:
        begun = Play.says(actions)
        assert begun == expected, f"it did: {begun!r}, not: {expected!r}"


def _slot_record(slot_record: req.SlotRecord) -> str:
    return f"{slot_record.limit}: {' '.join(slot_record.holders)}"


def text(action: a.Action) -> str:
    """Return an action in a few words."""
    match action:
        case (
            req.WatchKey(index=index, consistent=consistent)
            | req.WatchSlots(index=index, consistent=consistent)
        ):
            return f"watch {index}{' consistently' if consistent else ''}"
        case req.ReadKey(key=key) if key.startswith("p/"):
            return f"ask {key}"
        case req.ReadKey() | req.ReadSlots():
            return "read"
        case req.JoinSemaphore(session=session, slot_record=None):
            return f"enroll {session}"
        case (
            req.JoinSemaphore(session=session, slot_record=slot_record)
            | req.TakeSlot(session=session, slot_record=slot_record)
        ):
            assert slot_record is not None
            verb = "enroll" if isinstance(action, req.JoinSemaphore) else "take"
            return f"{verb} {session} as {_slot_record(slot_record)}"
        case req.LeaveSemaphore(session=session, slot_record=slot_record):
            return f"leave {session}" + ("" if slot_record is None else f" as {_slot_record(slot_record)}")
        case req.CreateSession():
            return "create"
        case req.ReadMaintenance():
            return "ask for maintenance"
        case req.ServiceRequest():
            return f"{type(action).__name__.removesuffix('Service').lower()} service"
        case req.ReadSession(session=session):
            return f"info {session}"
        case req.WatchTenure(index=index):
            return f"record {index}" if index else "look"
        case req.MarkTenure(record=record):
            return f"mark {record.session} {record.state}"
        case req.Acquire(session=s, over_record=True):
            return f"acquire {s} over"
        case req.Acquire(session=s, record=record) if record is not None:
            return f"acquire {s} with record"
        case req.Rewrite(session=s, record=record) if record is not None:
            return f"claim {s}"
        case req.Rewrite(session=s, ends_record=True):
            return f"clear {s}"
        case req.Release(session=s, ends_record=True):
            return f"release {s} and record"
        case req.Release(session=s, over_record=True):
            return f"release {s} only"
        case (
            req.RenewSession(session=s)
            | req.DestroySession(session=s)
            | req.Acquire(session=s)
            | req.Rewrite(session=s)
            | req.Release(session=s)
        ):
            return f"{type(action).__name__.removesuffix('Session').lower()} {s}"
        case a.StartHook(hook, attempt, context):
            return f"start {hook.name}#{attempt}: {context.reason}"
        case a.KillHook(started):
            return f"kill {started.hook.name}"
        case a.StartRun():
            return "start run"
        case a.StopRun():
            return "stop run"
        case a.RoleChanged(role=role):
            return str(role)
        case a.NoticeChanged(notice=notice):
            return f"notice: {notice.partition(':')[0]}" if notice else "no notice"
        case a.CannotStart(faults=faults, leads=leads):
            hooks = ", ".join(fault.hook for fault in faults)
            return (f"cannot start {hooks}" if faults else "all can start") + (" as holder" if leads else "")
        case a.Finished(clean=clean):
            return "finished" if clean else "finished, not clean"
        case _:
            raise AssertionError(action)


def beginning(**more: Any) -> Play:
    """Play the first step, at 0.0."""
    play = Play(contender(**more))
    play.does(0.0, "create, watch 0 consistently")
    return play


def waiting(**more: Any) -> Play:
    """Play until the session exists at 0.1; the watch of index 0 waits for its answer."""
    play = beginning(**more)
    play.does(0.1, CREATE, o.Created("s"), "")
    return play


def behind(**more: Any) -> Play:
    """Play until the contender waits behind a rival with a lock-delay of 15 s."""
    play = waiting(**more)
    play.does(0.2, WATCH, RIVAL, "watch 9, info rival")
    play.does(0.3, INFO, o.SessionInfo(15.0), "")
    return play


def trying(**more: Any) -> Play:
    """Play until an acquire was sent at 0.2."""
    play = waiting(**more)
    play.does(0.2, WATCH, FREE, "acquire s, watch 5")
    return play


def acquiring(**more: Any) -> Play:
    """Play until that acquire has won, and its send time is the contact; the first hook runs since 0.3."""
    play = trying(**more)
    play.on(0.3, ACQUIRE, WON)
    return play


def holding(**more: Any) -> Play:
    """Play until the node holds at 1.0 with a consistent watch; the contact is still 0.2."""
    play = acquiring(**more)
    if play.role == "acquiring":
        play.happens(1.0, e.HookEnded(play.last(a.StartHook), ok=True))
    play.does(1.0, WATCH, OURS, "watch 7 consistently")
    assert play.role == "holding"
    return play


def ended(node: Contenders, begun: list[a.Action], now: float) -> None:
    """Answer everything that was begun with success, until nothing more begins within a second."""
    todo = list(begun)
    for at in (now, now + 1.0):
        todo += node.step(e.Tick(), at)
        while todo:
            action, more = todo.pop(0), list[a.Action]()
            match action:
                case a.StartHook():
                    more = node.step(e.HookEnded(action, ok=True), at)
                case req.Release() | req.DestroySession():
                    more = node.step(e.Answered(action, o.Done()), at)
                case a.WriteRecord():
                    more = node.step(e.RecordWritten(action), at)
            todo += more or (node.step(e.Tick(), at) if not todo else [])
