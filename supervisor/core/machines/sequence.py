"""A list of hooks that run one after the other, each with its retries.

The sequence knows which hook is next and from when on. Its owner decides whether a hook may begin. No two
attempts run at once.
"""

from supervisor.core.actions import HookContext, StartHook
from supervisor.core.frozen import dataclass, replace
from supervisor.core.settings import Hook
from supervisor.core.times import LONG_AGO, NEVER

RETRY_DELAY_MAX_S = 30.0  # a doubling delay stops here, because operators do not expect later retries


@dataclass(frozen=True, slots=True)
class Sequence:
    """The progress of the list."""

    index: int = 0  # the hook that runs now or next
    attempts: int = 0  # how many attempts of that hook began
    running: StartHook | None = None
    due_at: float = LONG_AGO  # when the retry is due. LONG_AGO: no retry waits
    failed: bool = False  # a hook has failed, with all its retries
    ended_ok: bool | None = None  # the end of an attempt that ``settle`` has not judged. None: there is none

    @property
    def deadline(self) -> float:
        """When a retry is due. NEVER: no retry waits."""
        return NEVER if self.running is not None or self.due_at == LONG_AGO else self.due_at

    def finished(self, hooks: tuple[Hook, ...]) -> bool:
        return self.running is None and self.index >= len(hooks)

    def due(self, now: float) -> bool:
        """Return whether the next attempt may begin, if ``finished`` is false."""
        return self.running is None and self.due_at <= now

    def start(
        self, hooks: tuple[Hook, ...], context: HookContext, *, begin_by: float = NEVER
    ) -> tuple["Sequence", StartHook]:
        assert self.running is None and self.ended_ok is None
        start = StartHook(hooks[self.index], self.attempts + 1, context, begin_by)
        return replace(self, running=start, attempts=self.attempts + 1, due_at=LONG_AGO), start

    def ended(self, ok: bool) -> "Sequence":
        """Note that the attempt under way is over."""
        return replace(self, running=None, ended_ok=ok)

    def settle(
        self, hooks: tuple[Hook, ...], now: float, *, stop_at_failure: bool = False, end_by: float = NEVER
    ) -> "Sequence":
        """Judge the attempt that ended: go on, retry, or count the hook as failed.

        A retry is granted only if it and the first attempts of all later hooks end by ``end_by``.
        """
        if self.ended_ok is not None:
            return self._judge(hooks, now, stop_at_failure, end_by)
        waiting = self.running is None and self.due_at > LONG_AGO
        if waiting and not _fits(hooks, self.index, max(now, self.due_at), end_by):
            return self._next(hooks, stop_at_failure, failed=True)
        return replace(self, due_at=LONG_AGO) if waiting and self.due_at <= now else self

    def settle_any(self, hooks: tuple[Hook, ...], now: float) -> "Sequence":
        """Judge the attempt that ended in a list of which one success is enough: else try the next hook.

        After the last one the first follows, with a delay that doubles each time. There is no end to that but
        a success, by ``has_succeeded``, behind which it begins anew.
        """
        if self.has_succeeded or (self.index >= len(hooks) and self.running is None):
            return Sequence()
        if self.ended_ok is None:
            return replace(self, due_at=LONG_AGO) if LONG_AGO < self.due_at <= now else self
        rounds, index = divmod(self.attempts, len(hooks))
        due_at = LONG_AGO if index else now + _delay_s(hooks[0], rounds)
        return replace(self, index=index, due_at=due_at, ended_ok=None)

    @property
    def has_succeeded(self) -> bool:
        """Whether an attempt has succeeded that is not judged yet."""
        return self.ended_ok is True

    def _judge(self, hooks: tuple[Hook, ...], now: float, stop_at_failure: bool, end_by: float) -> "Sequence":
        hook = hooks[self.index]
        if self.ended_ok:
            return self._next(hooks, stop_at_failure, failed=False)
        begin_at = now + _delay_s(hook, self.attempts)
        if self.attempts <= hook.retries and _fits(hooks, self.index, begin_at, end_by):
            return replace(self, due_at=begin_at, ended_ok=None)
        return self._next(hooks, stop_at_failure, failed=True)

    def _next(self, hooks: tuple[Hook, ...], stop_at_failure: bool, *, failed: bool) -> "Sequence":
        index = len(hooks) if failed and stop_at_failure else self.index + 1
        return Sequence(index=index, failed=self.failed or failed)


def _delay_s(hook: Hook, failures: int) -> float:
    """Return how long to wait after so many failures in a row."""
    return min(hook.retry_delay_s * 2.0 ** min(failures - 1, 16), RETRY_DELAY_MAX_S)


def _fits(hooks: tuple[Hook, ...], index: int, begin_at: float, end_by: float) -> bool:
    return begin_at + sum(hook.attempt_s for hook in hooks[index:]) <= end_by
