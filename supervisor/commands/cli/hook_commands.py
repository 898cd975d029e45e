"""``test-hook``: one hook of the file, run as the daemon would run it."""

import argparse
import os
import signal
import socket
from typing import TYPE_CHECKING

from supervisor.commands.check.report import as_lines, lease_rows
from supervisor.commands.cli.consul_commands import item_of
from supervisor.commands.cli.exit_codes import DONE, NEGATIVE, USAGE
from supervisor.commands.cli.terminal import confirm, fail, run_async, say
from supervisor.config import load
from supervisor.config.formats.durations import format_duration
from supervisor.config.problems import known_names
from supervisor.core.settings import Command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from supervisor.core.actions import StartHook
    from supervisor.core.events import HookEnded
    from supervisor.core.settings import Hook, ItemSettings

STREAM_WIDTH = 7  # of stdout, stderr and delayed


def test_hook(options: argparse.Namespace) -> int:
    hostname = socket.gethostname()
    config = load(options.config, os.environ, hostname)
    item = item_of(config, options.config, options.name)
    # Late, because it imports everything that runs the daemon's hooks.
    from supervisor.adapters.hooks.reasons import REASONS
    from supervisor.adapters.hooks.rehearsal import hooks_by_place, start_of
    from supervisor.adapters.runtime.clock import boottime
    from supervisor.core.actions import Reason

    places = hooks_by_place(item)
    found = [each for each, (_, hook) in places.items() if options.hook in (each, hook.name)]
    if options.hook == "fence" and not found:
        found = [each for each, (event, _) in places.items() if event == "fence"]
    if not found:
        words = dict.fromkeys(name for each, (_, hook) in places.items() for name in (each, hook.name))
        return fail(
            USAGE, f"cannot find {options.hook} of {item.name}: it has {known_names(options.hook, words)}"
        )
    event, _ = places[found[0]]
    reasons = REASONS.get(event, (Reason.ACQUIRED,))
    reason = next((each for each in reasons if each == (options.reason or reasons[0])), None)
    if reason is None:
        known = known_names(options.reason, reasons)
        return fail(USAGE, f"cannot use --reason {options.reason} with {found[0]}: it has {known}")
    if code := _wrong_target(options, item, event, hostname):
        return code
    inherited = {name: value for name, value in os.environ.items() if name not in config.withheld}
    code = DONE
    for place in found:  # each method of a fence
        _, hook = places[place]
        start = start_of(item, event, hook, reason, boottime(), options.target or "")
        done, duration_s = run_async(_run(item, start, hostname, inherited))
        more = [("method", hook.name)] if len(found) > 1 else []
        say(as_lines([*more, *_rows(item, hook, done, duration_s)], "  ").rstrip("\n"))
        if not done.ok:
            code = fail(NEGATIVE, f"{place} of {item.name} failed: {done.detail}")
    return code


def _wrong_target(options: argparse.Namespace, item: "ItemSettings", event: str, hostname: str) -> int:
    """Return DONE if the hook may run with this --target. Else print why not, and return the exit code."""
    target, fence = options.target, item.fence
    if fence is None or event not in ("acquire", "fence"):
        wrong = f"cannot use --target with {options.hook} of {item.name}: it is for fence, and for on_acquire"
        return fail(USAGE, f"{wrong} of an election with fence") if target else DONE
    if event == "acquire":
        return DONE
    if not target:
        why = f"cannot run fence of {item.name} without a machine, because it switches that machine off"
        return fail(USAGE, f"{why}: name one by --target")
    own = (fence.target,) if fence.target else (hostname, hostname.partition(".")[0])
    if options.yes or target.lower() not in map(str.lower, own):
        return DONE
    return confirm(f"switch off {target}, this machine itself", f"fence of {item.name} was not run")


async def _run(
    item: "ItemSettings", start: "StartHook", node: str, environ: "Mapping[str, str]"
) -> "tuple[HookEnded, float]":
    import asyncio

    from supervisor.adapters.hooks.rehearsal import rehearse
    from supervisor.adapters.runtime.clock import boottime

    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):  # the hook is killed, as after Ctrl-C
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await rehearse(
        item,
        start,
        node=node,
        environ=environ,
        clock=boottime,
        on_line=lambda stream, text: say(f"{stream:<{STREAM_WIDTH}} {text}"),
    )


def _rows(
    item: "ItemSettings", hook: "Hook", done: "HookEnded", duration_s: float
) -> "Iterator[tuple[str, str]]":
    from supervisor.core.actions import LOSE_SIDE

    event = done.started.context.event

    timeout, kill_after, attempt = map(format_duration, (hook.timeout_s, hook.kill_after_s, hook.attempt_s))
    terms = f"timeout {timeout}"
    if isinstance(hook.call, Command):
        terms += f" + kill_after {kill_after}"
    yield "result", f"{'ok' if done.ok else 'failed'}: {done.detail}"
    yield "duration", f"{duration_s:.3f}s of {attempt} = {terms}"
    if event == "acquire":
        yield "share", f"{kill_after} of lose_time: kill_after, if no hook of on_acquire has a longer one"
    elif event in LOSE_SIDE:
        yield "share", f"{attempt} of lose_time"
    else:
        yield "share", "none of lose_time"
        return
    yield from (row for row in lease_rows(item) if row[0] == "lose_time")
