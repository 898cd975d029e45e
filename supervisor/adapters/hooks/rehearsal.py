"""One attempt of one hook outside the daemon, for ``test-hook``: ``Hooks`` runs it for an imagined event.

The facts of the event are those that the daemon would give, except those that only Consul knows. The session
consists of zeros, an ID that no session in Consul has. The fencing token is 0, the smallest, so that a
resource which compares tokens never takes the hook for one of a new holder. A former holder has the name that
its machine has for fence.
"""

import asyncio
import secrets
from collections.abc import Callable, Mapping

from supervisor.adapters.hooks.attempts import Hooks
from supervisor.adapters.hooks.output import HookLine
from supervisor.core.actions import LOSE_SIDE, Holder, HookContext, Previous, Reason, Role, StartHook
from supervisor.core.events import HookEnded, RunEnded
from supervisor.core.lease import margin_of
from supervisor.core.settings import HOOK_EVENTS, Hook, ItemSettings

SESSION = "00000000-0000-0000-0000-000000000000"
CHECK, FENCE = "candidate_check", "fence"


def hooks_by_place(settings: ItemSettings) -> dict[str, tuple[str, Hook]]:
    """Return the event and the hook of each place in the file, such as ``on_lose[0]``, without ``run``."""
    found = {
        f"{list_name}[{index}]": (event, hook)
        for list_name, event in HOOK_EVENTS.items()
        for index, hook in enumerate(settings.hooks_of(list_name))
    }
    if settings.check_hook is not None:
        found[CHECK] = ("check", settings.check_hook)
    for index, hook in enumerate(methods := settings.fence_methods):
        found[f"{FENCE}.try[{index}]" if len(methods) > 1 else FENCE] = ("fence", hook)
    return found


def start_of(
    settings: ItemSettings, event: str, hook: Hook, reason: Reason, now: float, target: str = ""
) -> StartHook:
    """Return the first attempt of the hook, as it begins at ``now``, with the facts of such an event.

    target: the machine of the former holder, as fence knows it. Blank: the former holder released in order.
    """
    of_many, own = settings.kind == "semaphore", settings.value
    leads, lost = event in ("acquire", "change", "fence"), event in LOSE_SIDE
    end = "" if event == "fence" else "fenced" if target else "released"
    tried = (hook,) if event == "fence" else settings.fence_methods if end == "fenced" else ()
    method = tried[0].name if tried else ""
    tells_end = settings.fence is not None and event in ("acquire", "fence")
    context = HookContext(
        event=event,
        name=settings.name,
        key=settings.key,
        reason=reason,
        transition=f"test-hook-{secrets.token_hex(8)}-{event}",
        session="" if event == "check" or (of_many and event == "change") else SESSION,
        leader=own if leads and not of_many else None,
        previous_leader=own if (lost or event == "fence") and not of_many else None,
        rival_at=now + _time_left_s(settings, hook) if lost else None,
        kind=settings.kind,
        holders=(Holder(SESSION, own),) if leads and of_many else (),
        slot=0 if of_many and event not in ("change", "check") else None,
        role={"change": Role.HOLDING, "check": Role.WAITING}.get(event),
        previous=Previous(end, target, target, target, method=method) if tells_end else None,
    )
    return StartHook(hook, 1, context)


def _time_left_s(settings: ItemSettings, hook: Hook) -> float:
    """Return the least time until a rival may hold, when the hooks before this one took all of theirs."""
    hooks = (*settings.on_lose, *settings.on_lose_failure)
    rest = hooks[hooks.index(hook) :]
    return sum(each.attempt_s for each in rest) + margin_of(settings.lockout_s)


async def rehearse(
    settings: ItemSettings,
    start: StartHook,
    *,
    node: str,
    environ: Mapping[str, str],
    clock: Callable[[], float],
    on_line: Callable[[str, str], None],
) -> tuple[HookEnded, float]:
    """Run the attempt to its end, and return that and how long it took. If it is cancelled, it is killed.

    environ: the environment that the daemon would let its hooks inherit.
    on_line: receives each line of the output and where it was written, and why a start is delayed.
    """
    lines: asyncio.Queue[tuple[str, str] | None] = asyncio.Queue()
    ends: list[tuple[HookEnded, float]] = []

    def ended(event: HookEnded | RunEnded) -> None:
        assert isinstance(event, HookEnded)
        ends.append((event, clock()))
        lines.put_nowait(None)

    def written(line: HookLine) -> None:
        lines.put_nowait((line.stream, line.text))

    hooks = Hooks(
        node=node,
        report=ended,
        log_line=written,
        delayed=lambda _, why: lines.put_nowait(("delayed", why)),
        environ=environ,
        clock=clock,
    )
    try:
        await hooks.preload_users(settings)
        began_at = clock()
        hooks.start(start)
        while (line := await lines.get()) is not None:
            on_line(*line)
    finally:
        await hooks.close()
    while not lines.empty():  # the rest of the output is read after the end was reported
        if (line := lines.get_nowait()) is not None:
            on_line(*line)
    (end, ended_at), *_ = ends
    return end, ended_at - began_at
