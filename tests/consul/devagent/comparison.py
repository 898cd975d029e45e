"""A comparison: the model and a real agent get the same sequences of requests and must agree.

To agree means to have the same status, headers that count and body, the same relations of each index to all
others of the sequence, and the same queries that each step wakes. DIFFERENCES lists the intended differences.
Ids are compared by name and indexes by rank. Many sequences run interleaved, in one order on both sides.
"""

import itertools
import re
from contextlib import closing
from dataclasses import dataclass, field

from tests.consul.devagent.play import Run, play
from tests.consul.devagent.sequences import Sequence
from tests.consul.devagent.sides import ModelSide, RealSide
from tests.support.consul import Agent

_SERVICE = (
    '^200 .*"Service": "web", "Tags": \\["a"\\], "Meta": {"managed-by": "m"}, "Port": 80, "Address": ""'
)
# Words that differ on purpose, as docs/drill.md lists: (a match for the model's response, one for the real).
DIFFERENCES = (
    ("^400 .*Request decode failed: ", "^400 .*Request decode failed: "),
    ("^400 .*Failed to parse body: ", "^400 .*Failed to parse body: "),
    ("^400 .*Conflicting flags: ", "^400 .*Conflicting flags: "),
    ("^413 .*Request body.* too large", "^413 .*Request body.* too large"),
    ("^500 .*Session TTL '.*' invalid: ", "^500 .*Session TTL '.*' invalid: "),
    (_SERVICE, _SERVICE),
    ("^500 .* is no unsigned number", "^500 .*strconv.ParseUint: "),
)
SETTLE_S = (0.02, 0.2)  # until a query surely waits and may be woken: at first, and if in doubt
INDEX = re.compile(r'"(?:CreateIndex|ModifyIndex)":\s*(\d+)|modify index (\d+) != (\d+)|Index=(\d+)')
prefixes = (f"c{number:04d}/" for number in itertools.count())


@dataclass(slots=True)
class Result:
    """The compared sequences, and the disagreements."""

    sequences: int = 0
    woken: int = 0
    cut_short: int = 0
    faults: list[str] = field(default_factory=list)


def compare(
    sequences: list[Sequence], real: RealSide, model: ModelSide, settles_s: tuple[float, ...]
) -> Result:
    """Run all sequences: first those in which no time passes, and then the others, each lot at once."""
    result = Result()
    for timed in (False, True):
        lot = [sequence for sequence in sequences if sequence.timed is timed]
        for settle_s in settles_s if lot else ():
            runs = [Run(sequence, next(prefixes)) for sequence in lot]
            play(runs, real, model, settle_s)
            faults = [fault for run in runs if (fault := _fault(run))]
            if not faults or settle_s == settles_s[-1]:
                _count(result, runs, faults)
                break
    return result


def _fault(run: Run) -> str:
    """Return the first line on which the sides differ, with the lines before it; blank if they agree."""
    shown = [_normal(told[: run.sure], ids) for told, ids in zip(run.told, run.ids, strict=True)]
    for at, (model, real) in enumerate(zip(*shown, strict=True)):
        if model != real and not _on_purpose(model, real):
            before = "".join(f"      {line[:300]}\n" for line in shown[0][max(0, at - 6) : at])
            steps = "".join(f"      {n} {s.method} {s.target} {s.body[:120]} {s.at_s:g}\n"
                            for n, s in enumerate(run.sequence.steps[: run.position]))  # fmt: skip
            return (
                f"{run.sequence.title} {run.prefix}\n{steps}{before}model {model[:600]}\nreal  {real[:600]}\n"
            )
    return ""


def _normal(lines: list[str], kept_ids: list[str]) -> list[str]:
    """Return the lines with ids numbered by their first use and indexes by their rank."""
    ids = {value: f"<{at}>" for at, value in enumerate(kept_ids) if len(value) == 36}
    known = re.compile("|".join(map(re.escape, [*ids, *(value.upper() for value in ids)])) or "(?!)")
    lines = [
        known.sub(lambda match: ids[match[0].lower()] + ("^" if match[0].isupper() else ""), line)
        for line in lines
    ]
    lines = [re.sub(r'"ID": "[0-9a-f-]{36}"', '"ID": "<id>"', line) for line in lines]
    met = {
        int(group) for line in lines for match in INDEX.finditer(line) for group in match.groups() if group
    }
    rank = {index: at for at, index in enumerate(sorted(met))}

    def ranked(match: re.Match[str]) -> str:
        return re.sub(r"\d+", lambda number: f"#{rank[int(number[0])]}", match[0])

    return [INDEX.sub(ranked, line) for line in lines]


def _on_purpose(model: str, real: str) -> bool:
    pairs = ((model.partition(" ")[2], real.partition(" ")[2]),)
    return any(re.search(ours, a) and re.search(theirs, b) for ours, theirs in DIFFERENCES for a, b in pairs)


def _count(result: Result, runs: list[Run], faults: list[str]) -> None:
    result.sequences += len(runs)
    result.woken += sum(": woken" in line for run in runs for line in run.told[0])
    result.cut_short += sum(run.sure is not None for run in runs)
    result.faults += faults


def against(
    host: str,
    port: int,
    node: str,
    sequences: list[Sequence],
    settles_s: tuple[float, ...] = SETTLE_S,
    *,
    client_agent: bool = False,
) -> Result:
    """Compare with the agent at this address.

    client_agent: the agent is a client agent.
    """
    with closing(RealSide(host, port)) as real:
        return compare(sequences, real, ModelSide(node, client_agent=client_agent), settles_s)


def node_of(agent: Agent) -> str:
    return str(agent.call("GET", "/agent/self").json()["Config"]["NodeName"])
