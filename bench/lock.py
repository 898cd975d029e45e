"""Row: one lock around one command, `lock` beside `consul lock`.

Both have the session of `consul lock`, run the same child without a shell, and share one agent.

- Start to child: from the start of the process to the first instruction of its child, with the key free.
- Hand-over: from the end of a child to the first instruction of the next one, with two candidates for a key.
- Memory: the resident memory of the process while its child runs, and of what it needs beside the child.
- After KILL: the processes of the command that run a second after the process was killed. The command is a
  shell that waits for a child of its own.
- Cut off: for how long the command acts on after the agent has stopped answering. Another node may hold after
  45 s (2 x TTL and the lock-delay), so this row watches for 60 s.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import psutil

from bench.contender import Contender
from bench.contenders import consul_lock, lock_command
from bench.figures import Figure, median_and_p95
from bench.handover import Kinds, hand_overs
from bench.lab import Lab, Rig
from tests.support.consul import Agent

ROW = "lock"
MAKERS = {"lock": lock_command, "consul lock": consul_lock}
KINDS: Kinds = tuple((kind, f"bench/{kind.split()[0]}", maker) for kind, maker in MAKERS.items())
ROUNDS, ROUNDS_QUICK = 10, 3
CANDIDATES = 2
BREATH_S = 0.3  # so that the effects of a process's end are over
SETTLE_S = 1.0  # after the first instruction of the child
AFTER_KILL_S = 1.0
WATCHED_S, WATCHED_QUICK_S = 60.0, 12.0
LOOK_EVERY_S = 0.05
BELOW_A_SHELL = ("/bin/sh", "-c", '"$0" "$@"; true')

Measured = Callable[[Agent, Contender], float]
"""Measures a contender whose child runs."""


def measure(lab: Lab) -> Iterator[Figure]:
    """Measure both kinds in turn, figure by figure."""
    watched_s = WATCHED_QUICK_S if lab.quick else WATCHED_S
    lab.say("lock, start to child")
    yield from _starts(lab)
    lab.say("lock, hand-over")
    for kind, samples in hand_overs(lab, persistent=False, candidates=CANDIDATES, kinds=KINDS).items():
        yield from median_and_p95(ROW, f"hand-over, {kind}", samples, "ms")
    lab.say("lock, memory, KILL and cut-off")
    yield from _holders(lab, "memory", "MB", lambda agent, holder: _memory_mb(holder))
    yield from _holders(lab, "left after KILL", "processes", _left_after_kill, BELOW_A_SHELL)
    yield from _holders(
        lab, f"acts when cut off, of {watched_s:g} s", "s", partial(_acts_on_s, watched_s=watched_s)
    )


def _starts(lab: Lab) -> list[Figure]:
    samples: dict[str, list[float]] = {kind: [] for kind in MAKERS}
    with lab.rig() as rig:
        url = rig.agent().url
        contenders = [(kind, maker(rig, url, folder, kind.split()[0])) for kind, folder, maker in KINDS]
        for turn in range(1 + lab.samples(ROUNDS, ROUNDS_QUICK)):
            for kind, contender in contenders:
                took_ms = _begun_ms(rig, contender)
                samples[kind] += [took_ms] if turn else []  # the first warms the machine up
                contender.terminate()
                contender.wait_gone()
                time.sleep(BREATH_S)
    return [
        figure
        for kind, series in samples.items()
        for figure in median_and_p95(ROW, f"start to child, {kind}", series, "ms")
    ]


def _begun_ms(rig: Rig, contender: Contender) -> float:
    mark = rig.stamps.mark()
    began_ns = time.monotonic_ns()
    contender.start()
    begin = rig.stamps.wait(mark, lambda stamp: stamp.edge == "begin")
    return (begin.at_ns - began_ns) / 1e6


def _holders(lab: Lab, what: str, unit: str, measured: Measured, before: Sequence[str] = ()) -> list[Figure]:
    """Measure one holder of each kind, each on an agent of its own."""
    figures = []
    for kind, maker in MAKERS.items():
        with lab.rig() as rig:
            agent = rig.agent()
            holder = maker(rig, agent.url, "bench/one", "one", before)
            _begun_ms(rig, holder)
            time.sleep(SETTLE_S)
            figures.append(Figure(ROW, f"{what}, {kind}", measured(agent, holder), unit))
    return figures


def _memory_mb(holder: Contender) -> float:
    """Return the resident memory of the process and of its children except the command."""
    process = psutil.Process(holder.pid)
    children = [child for child in process.children() if child.name() != "stamp"]
    return float(sum(each.memory_info().rss for each in (process, *children))) / 1e6


def _left_after_kill(agent: Agent, holder: Contender) -> float:
    command = psutil.Process(holder.pid).children(recursive=True)
    os.kill(holder.pid, signal.SIGKILL)
    time.sleep(AFTER_KILL_S)
    return float(sum(map(_runs, command)))


def _acts_on_s(agent: Agent, holder: Contender, *, watched_s: float) -> float:
    (command,) = (child for child in psutil.Process(holder.pid).children() if child.name() == "stamp")
    agent.freeze()
    began = time.monotonic()
    while _runs(command) and time.monotonic() - began < watched_s:
        time.sleep(LOOK_EVERY_S)
    return time.monotonic() - began


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
