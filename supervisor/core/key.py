"""What is known of one key, and how it is found out: a watch, reads, and the holder's lock-delay.

It knows which answer to believe, when to ask again and from when on a free key may be tried. It
never decides what an answer means for a tenure: it hands it on as ``News``.
"""

from dataclasses import dataclass, replace

from supervisor.core.actions import ReadKey, ReadSession, Request, WatchKey
from supervisor.core.events import KeyView, Outcome, SessionInfo
from supervisor.core.lane import NEVER, Lane
from supervisor.core.session import Terms

WAIT_S = 30.0  # an abandoned query stays counted by the agent until its wait runs out
WAIT_SLACK_S = 10.0  # Consul answers within wait + wait/16; then the network's and its own delays
FREE_NEWS_S = 1.0  # a try follows an answer younger than this that showed the key free
READ_AHEAD_S = 0.1  # so long before a try that answer is asked for, if there is none
LOCK_DELAY_SLACK_S = 0.002  # Consul's own timer, and the way of the news that the delay began
LOCK_DELAY_RETRY_S = 1.0  # Consul logs a warning for every try that comes too soon
IDLE_WAKES_MAX = 5  # a watch that wakes without change is re-armed at once so many times
IDLE_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class News:
    """An answer about the key, asked for at ``at``, that was true at ``fresh_at`` or later.

    ``old``: it was asked for before what is known now; it can confirm but not contradict.
    """

    view: KeyView
    at: float
    fresh_at: float
    consistent: bool
    old: bool


@dataclass(frozen=True, slots=True)
class Key:
    """``view``: the newest believed answer. ``index``: what the next watch asks from; 0: anew.

    ``free_at``: when the key was surely free. ``free_since``: when it was first seen free.
    ``try_at``: no acquire before. ``holder``: the session that holds it, or held it last.
    ``holder_delay``: the lock-delay of the holder's session, as
    (session, seconds), read while it held.
    """

    watch: Lane = Lane(due_at=-NEVER)
    read: Lane = Lane()
    info: Lane = Lane()
    view: KeyView | None = None
    index: int = 0
    idle_wakes: int = 0
    free_at: float = -NEVER
    free_since: float = NEVER
    try_at: float = -NEVER
    holder: str = ""
    holder_delay: tuple[str, float] | None = None

    @property
    def is_free(self) -> bool:
        """Whether nobody holds it, as far as is known."""
        return self.view is not None and not self.view.session

    def is_surely_free(self, at: float) -> bool:
        """Whether the news that it is free is young enough at that time."""
        return at - self.free_at < FREE_NEWS_S

    @property
    def deadline(self) -> float:
        """When one of the lanes wants a turn."""
        return min(self.watch.deadline, self.read.deadline, self.info.deadline)

    def try_deadline(self) -> float:
        """When whoever may try wants a turn: for the try, or for the news that it lacks."""
        if self._read_is_on:
            return NEVER
        return self.try_at - (0.0 if self.is_surely_free(self.try_at) else READ_AHEAD_S)

    def lacks_news(self, now: float) -> bool:
        """Whether the next try lacks an answer young enough, and nobody has asked for one."""
        if self._read_is_on or now < self.try_at - READ_AHEAD_S:
            return False
        return not self.is_surely_free(max(now, self.try_at))

    @property
    def _read_is_on(self) -> bool:
        return self.read.pending is not None or self.read.due_at != NEVER

    def read_by(self, at: float) -> "Key":
        """Want a consistent answer, asked for at ``at`` at the latest."""
        return replace(self, read=self.read.by(at))

    def doubted(self, read_at: float) -> "Key":
        """No longer surely free: ask at ``read_at`` before the next try."""
        return replace(self, free_at=-NEVER, read=self.read.by(read_at))

    def resumed(self, now: float) -> "Key":
        """Time has passed unseen: what the watch may say now may be long past."""
        return replace(self.doubted(now), watch=self.watch.aged())

    def quiet(self) -> "Key":
        """Ask nothing any more."""
        lanes = (replace(lane, due_at=NEVER) for lane in (self.watch, self.read, self.info))
        watch, read, info = lanes
        return replace(self, watch=watch, read=read, info=info)

    def won(self, view: KeyView, read_at: float) -> "Key":
        """Ours from ``view`` on: what is under way was asked for before that."""
        read = self.read.aged().by(read_at)
        return replace(self, index=view.modify_index, watch=self.watch.aged(), read=read)

    def given_up(self) -> "Key":
        """Ours no longer: the holder's regular reads end."""
        return replace(self, read=replace(self.read, due_at=NEVER))

    def delayed(self, default_s: float, pause_s: float, now: float) -> "Key":
        """Refused by the lock-delay: try when it should be over, then about once a second.

        ``default_s``: the lock-delay where the former holder's is not known.
        """
        lock_delay_s = default_s
        if self.holder_delay is not None and self.holder_delay[0] == self.holder:
            lock_delay_s = self.holder_delay[1]
        over_at = self.free_since + lock_delay_s + LOCK_DELAY_SLACK_S
        return replace(self, try_at=over_at if over_at > now else now + LOCK_DELAY_RETRY_S + pause_s)


def note(key: Key, news: News, our_session: str, now: float) -> Key:
    """Believe it: this is the key from now on."""
    view = news.view
    key = replace(key, view=view)
    if not view.session and key.free_since != NEVER:
        return replace(key, free_at=max(news.fresh_at, key.free_at))
    if not view.session:
        return replace(key, free_at=news.fresh_at, free_since=now, try_at=now)
    known = key.holder_delay is not None and key.holder_delay[0] == view.session
    info = key.info if known or view.session == our_session else key.info.by(now)
    return replace(key, holder=view.session, free_at=-NEVER, free_since=NEVER, info=info)


# --- answers -------------------------------------------------------------------------------------


def watch_answered(
    key: Key, terms: Terms, request: WatchKey, outcome: Outcome, now: float
) -> tuple[Key, News | None]:
    """The watch came to its end; what it says is news unless it is no answer, or an old one."""
    old = key.watch.old
    if not isinstance(outcome, KeyView):
        return replace(key, watch=key.watch.end(now + terms.retry_s), index=0), None
    fell = outcome.index < request.index
    changed = key.view is None or replace(outcome, index=0) != replace(key.view, index=0)
    early = now - request.at < request.wait_s
    idle_wakes = min(key.idle_wakes + 1, IDLE_WAKES_MAX + 1) if early and not changed else 0
    pause_s = 0.0 if idle_wakes <= IDLE_WAKES_MAX else IDLE_PAUSE_S
    key = replace(key, watch=key.watch.end(now + pause_s), idle_wakes=idle_wakes)
    if old:
        return key, None  # the next one asks from the index of our tenure on
    key = replace(key, index=0 if fell else outcome.index)
    if fell and not request.consistent:
        return key, None  # a server that lags behind; the next one asks anew, consistently
    if changed:
        key = replace(key, read=key.read.aged())
    return key, News(outcome, request.at, now, request.consistent, old=False)


def read_answered(
    key: Key, terms: Terms, request: ReadKey, outcome: Outcome, now: float
) -> tuple[Key, News | None]:
    """A read came to its end."""
    old = key.read.old
    if not isinstance(outcome, KeyView):
        return replace(key, read=key.read.end(now + terms.retry_s)), None
    return replace(key, read=key.read.end()), News(outcome, request.at, request.at, consistent=True, old=old)


def info_answered(key: Key, terms: Terms, request: ReadSession, outcome: Outcome, now: float) -> Key:
    """The holder's lock-delay; ours where Consul does not show the session."""
    if not isinstance(outcome, SessionInfo):
        return replace(key, info=key.info.end(now + terms.retry_s))
    delay_s = outcome.lock_delay_s
    if delay_s is None:
        delay_s = terms.settings.lock_delay_s
    return replace(key, info=key.info.end(), holder_delay=(request.session, delay_s))


# --- questions -----------------------------------------------------------------------------------


def begin_questions(key: Key, terms: Terms, now: float, *, holding: bool) -> tuple[Key, tuple[Request, ...]]:
    """Whatever is due now. A holder's watch is consistent, and so is one that asks anew."""
    begun: list[Request] = []
    if key.read.ready(now):
        read = ReadKey(terms.election, now, terms.exchange_s, terms.key)
        key = replace(key, read=key.read.begin(read))
        begun.append(read)
    if key.watch.ready(now):
        timeout_s = WAIT_S * 17 / 16 + WAIT_SLACK_S
        consistent = holding or key.index == 0
        watch = WatchKey(terms.election, now, timeout_s, terms.key, key.index, WAIT_S, consistent)
        key = replace(key, watch=key.watch.begin(watch))
        begun.append(watch)
    if key.info.ready(now) and key.view is not None and key.view.session:
        info = ReadSession(terms.election, now, terms.exchange_s, key.view.session)
        key = replace(key, info=key.info.begin(info))
        begun.append(info)
    elif key.info.ready(now):
        key = replace(key, info=replace(key.info, due_at=NEVER))
    return key, tuple(begun)
