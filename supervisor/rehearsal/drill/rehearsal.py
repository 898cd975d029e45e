"""All plays of all items, one after the other.

After a play with a broken promise the next one begins on a new stage, so that no play suffers from another.
"""

import asyncio
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from supervisor.config import Config
from supervisor.config.problems import KeyPath, Positions
from supervisor.core.settings import ItemSettings
from supervisor.errors import NotPossible
from supervisor.rehearsal.drill.backstage import temporary_folder
from supervisor.rehearsal.drill.bounds import MACHINE_S, START_S, hold_s, play_s
from supervisor.rehearsal.drill.plays import Play, perform, plays_of
from supervisor.rehearsal.drill.promises import Played
from supervisor.rehearsal.drill.shortened import shorten
from supervisor.rehearsal.drill.stage import DrillCluster

NOT_HELD = "no node held the lock"
PREFIX = "cs-drill-"  # short, because the path of a socket is


@dataclass(frozen=True, slots=True)
class Drilled:
    """One item, and the results of its plays."""

    original: ItemSettings
    settings: ItemSettings  # as the drill runs it, with the hooks of the file
    changes: tuple[str, ...]  # what differs from the file, a text for each change
    played: tuple[Played, ...] = ()

    @property
    def kept(self) -> bool:
        return all(play.kept for play in self.played)


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a drill."""

    items: tuple[Drilled, ...]  # the items, shortened
    configs: Mapping[str, Config]  # the configuration as each node loads it
    speed: float
    real: bool  # whether the hooks of the file run
    left: int  # how many items are left out, because one of each ``for_each`` is enough

    @property
    def bound_s(self) -> float:
        return sum(_bound_s(each.settings) for each in self.items)

    @property
    def machine_s(self) -> float:
        """The part of the bound that only a busy machine needs, to start and stop supervisors."""
        played = sum(len(_suitable(each.settings)) for each in self.items)
        return played * MACHINE_S + len(self.items) * START_S


def _bound_s(item: ItemSettings) -> float:
    return len(_suitable(item)) * play_s(item) + hold_s(item)


def _suitable(item: ItemSettings) -> list[Play]:
    return [play for play in plays_of(item) if not play.skipped(item)]


def plan(
    configs: Mapping[str, Config], names: Sequence[str], speed: float, *, real: bool, each: bool = False
) -> Plan:
    """Return the plan of a drill of these items. No names: of every item.

    each: without names, every item of a ``for_each`` too. Else the first item of a ``for_each`` alone.
    """
    config = next(iter(configs.values()))
    chosen: Sequence[ItemSettings] = config.items
    if names:
        chosen = [item for item in chosen if item.name in names]
    elif config.positions is not None and not each:
        chosen = _one_of_each(chosen, config.positions)
    shortened = tuple(Drilled(item, *shorten(item, speed, real=real)) for item in chosen)
    return Plan(shortened, configs, speed, real, 0 if names else len(config.items) - len(chosen))


def _one_of_each(items: Iterable[ItemSettings], places: Positions) -> list[ItemSettings]:
    """Return the items without those that differ from an earlier one only by their value of ``for_each``."""
    by_path: dict[KeyPath, ItemSettings] = {}
    for item in items:
        by_path.setdefault(places.written((f"{item.kind}s", item.name)), item)
    return list(by_path.values())


async def rehearse(
    planned: Plan, item: Drilled, environ: Mapping[str, str], progress: Callable[[str], None]
) -> Drilled:
    """Perform every play of one item. Raises NotPossible when that takes longer than its bound."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)  # so that everything is ended
    try:
        async with asyncio.timeout(_bound_s(item.settings)):
            played = await _played(planned, item, environ, progress)
    except TimeoutError:
        raise NotPossible(f"cannot finish the drill of {item.original.name} within its bound") from None
    return replace(item, played=played)


async def _played(
    planned: Plan, item: Drilled, environ: Mapping[str, str], progress: Callable[[str], None]
) -> tuple[Played, ...]:
    settings, played = item.settings, list[Played]()
    plays = plays_of(settings)
    async with AsyncExitStack() as opened:
        stage: DrillCluster | None = None
        for number, play in enumerate(plays, 1):
            progress(f"{item.original.name}: {number} of {len(plays)}, {play.title}")
            lacks_holder = bool(played) and played[0].play == "start" and not played[0].kept
            if why := play.skipped(settings) or ("" if not lacks_holder else played[0].skipped or NOT_HELD):
                played.append(Played(play.name, play.title, skipped=why))
                continue
            if stage is None:
                folder = await opened.enter_async_context(temporary_folder(PREFIX))
                stage = DrillCluster(folder, settings, planned.configs, real=planned.real, environ=environ)
                opened.push_async_callback(stage.close)
                await stage.open()
            played.append(await perform(play, stage))
            if not played[-1].kept or play.breaks(settings):
                stage = None
                await opened.aclose()
    return tuple(played)
