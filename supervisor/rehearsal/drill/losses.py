"""The promises that each way to lose a lock has in common, and the next holder."""

from supervisor.config.formats.durations import format_duration
from supervisor.rehearsal.drill.backstage import until
from supervisor.rehearsal.drill.bounds import acquire_s
from supervisor.rehearsal.drill.recorders import RecordedRun
from supervisor.rehearsal.drill.stage import DrillCluster
from supervisor.rehearsal.drill.tenures import ObservedTenure

FAILURES_MAX = 2  # of on_lose in one line


def exclusive(stage: DrillCluster) -> None:
    what, limit = "holders at once", stage.limit
    if stage.item.accept_overlap:
        stage.judge(what, "no limit, because accept_overlap is true", str(stage.most), kept=True)
    else:
        stage.judge(what, f"at most {limit}", str(stage.most), stage.most <= limit)


def in_order(stage: DrillCluster, tenure: ObservedTenure) -> None:
    succeeded(stage, tenure)
    if stage.item.on_lose:
        in_time = tenure.node not in stage.disorder
        stage.yes("on_lose ends before the release", in_time, "released before its end")


def succeeded(stage: DrillCluster, tenure: ObservedTenure) -> None:
    if not stage.item.on_lose:
        return
    done = {attempt.place for attempt in tenure.of("on_lose") if attempt.succeeded}
    wrong = [_failure(stage, one) for one in tenure.of("on_lose") if one.place not in done]
    otherwise = "; ".join(wrong[:FAILURES_MAX]) if tenure.of("on_lose") else "on_lose did not run"
    stage.yes("on_lose succeeds", len(done) == len(stage.item.on_lose), otherwise)


def _failure(stage: DrillCluster, attempt: RecordedRun) -> str:
    hooks = {f"on_lose[{position}]": hook for position, hook in enumerate(stage.item.on_lose)}
    hook = hooks[attempt.place]
    if attempt.ended_at is None:
        return f"{hook.name} still runs"
    taken_s = attempt.ended_at - attempt.began_at
    timeout = format_duration(hook.timeout_s)
    return f"{hook.name} {attempt.ending} after {format_duration(taken_s)} (timeout {timeout})"


def lose_time(stage: DrillCluster, tenure: ObservedTenure, at: float) -> None:
    if stage.item.on_lose or stage.item.run:
        taken_s = elapsed_s(at, tenure.lost_at)
        stage.at_most("losing has ended (lose_time)", stage.lease.lose_time_s, taken_s)


def spare(stage: DrillCluster, tenure: ObservedTenure, following: ObservedTenure | None) -> None:
    """Judge the promise that a margin lies between the end of on_lose and the next holder."""
    if stage.item.accept_overlap or not stage.item.on_lose:
        return
    spare_s = None if tenure.lost_at is None else after(tenure.lost_at, following)
    stage.at_least("from the end of on_lose to the next holder (margin)", stage.lease.margin_s, spare_s)


async def next_holder(stage: DrillCluster, at: float, within_s: float) -> ObservedTenure | None:
    """Wait for a tenure that begins after ``at``, and until its node holds. None: there is none in time."""
    if await until(lambda: bool(stage.since(at)), within_s):
        await until(lambda: any(tenure.holds for tenure in stage.since(at)), acquire_s(stage.item))
    return next(iter(stage.since(at)), None)


def after(at: float, following: ObservedTenure | None) -> float | None:
    return elapsed_s(at, None if following is None else following.since)


def elapsed_s(begin: float, end: float | None) -> float | None:
    return None if end is None else end - begin
