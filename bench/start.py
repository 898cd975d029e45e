"""Row: how long a process takes from its start to its result.

`--help`, `holds` and `status` of a daemon that holds, and `check` of a file of one and of a hundred
elections: from start to end. `run` and `lock`, with the key free: from start to the first instruction of the
first on_acquire or of the command, beside `consul lock` and its child. All of them run in turn on one agent.
The machine is warm: each has run once before it counts. The least value is the least disturbed one.
"""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from bench.contender import Contender
from bench.contenders import COMMAND, consul_lock, consul_supervisor, lock_command
from bench.figures import Figure, median_and_p95
from bench.lab import AS_INSTALLED, ROOT, Lab, Rig, wait_until

ELECTIONS = 100
HELP_MS, CHECK_MS, RUN_MS = 150.0, 400.0, 600.0
ASK_MS, SMALL_CHECK_MS, LOCK_MS = 80.0, 150.0, 140.0  # for Debian's Python on a quiet machine
WARM_UPS = 1
ROUNDS, ROUNDS_QUICK = 10, 3
BREATH_S = 0.3  # so that the effects of a process's end are over
ELECTION = """\
  app{number}:
    key: service/app{number}/leader
    value: {{Node: "${{HOSTNAME}}", Port: {number}}}
    session: {{ttl: 15s, lock_delay: 45s}}
    on_acquire:
      - exec: [/usr/local/sbin/promote, --fence]
        timeout: 20s
    on_lose:
      - shell: systemctl stop app{number}
        timeout: 8s
    on_change:
      - webhook: https://hooks.example.net/leader
"""

Sample = Callable[[], float]
"""Runs a process once more, and returns the milliseconds that it took."""


def measure(lab: Lab) -> list[Figure]:
    """Measure all kinds in turn."""
    lab.say("start")
    with lab.rig() as rig:
        url = rig.agent().url
        ours = consul_supervisor(rig, url, "bench/ours", "ours")
        theirs = consul_lock(rig, url, "bench/theirs", "theirs")
        lock = lock_command(rig, url, "bench/lock", "lock")
        holder = consul_supervisor(rig, url, "bench/held", "held")
        holder.start()
        rig.stamps.wait(0, lambda stamp: stamp.edge == "end")
        wait_until(lambda: _command("holds", "bench", *_socket(rig)).returncode == 0, "a holder")
        file, small = _file(rig), rig.folder / "held.yaml"
        kinds: tuple[tuple[str, Sample, float | None], ...] = (
            ("--help", lambda: _command_ms("--help"), HELP_MS),
            ("holds", lambda: _command_ms("holds", "bench", *_socket(rig)), ASK_MS),
            ("status", lambda: _command_ms("status", *_socket(rig)), ASK_MS),
            ("check of one election", lambda: _command_ms("check", str(small)), SMALL_CHECK_MS),
            (f"check of {ELECTIONS} elections", lambda: _command_ms("check", str(file)), CHECK_MS),
            ("run → on_acquire", lambda: _begun_ms(rig, ours), RUN_MS),
            ("lock → command", lambda: _begun_ms(rig, lock), LOCK_MS),
            ("consul lock → child", lambda: _begun_ms(rig, theirs), None),
        )
        rounds = WARM_UPS + lab.samples(ROUNDS, ROUNDS_QUICK)
        series = list(zip(*[[sample() for _, sample, _ in kinds] for _ in range(rounds)], strict=True))
    return [
        figure
        for (what, _, limit_ms), samples in zip(kinds, series, strict=True)
        for figure in (
            *median_and_p95("start", what, samples[WARM_UPS:], "ms", limit_ms),
            Figure("start", f"{what}, least", min(samples[WARM_UPS:]), "ms"),
        )
    ]


def _file(rig: Rig) -> Path:
    """Write the file of many elections as an operator would, and return its path."""
    path = rig.folder / "many.yaml"
    path.write_text("elections:\n" + "".join(ELECTION.format(number=number) for number in range(ELECTIONS)))
    return path


def _socket(rig: Rig) -> tuple[str, str]:
    return "--socket", rig.control_socket("held")


def _command(*arguments: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [*COMMAND, *arguments], cwd=ROOT, env={**os.environ, **AS_INSTALLED}, capture_output=True, check=False
    )


def _command_ms(*arguments: str) -> float:
    began_ns = time.monotonic_ns()
    done = _command(*arguments)
    took_ms = (time.monotonic_ns() - began_ns) / 1e6
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr.decode()}")
    return took_ms


def _begun_ms(rig: Rig, contender: Contender) -> float:
    mark = rig.stamps.mark()
    began_ns = time.monotonic_ns()
    contender.start()
    begin = rig.stamps.wait(mark, lambda stamp: stamp.edge == "begin")
    contender.terminate()
    contender.wait_gone()
    time.sleep(BREATH_S)
    return (begin.at_ns - began_ns) / 1e6
