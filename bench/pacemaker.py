"""Row: the holder's machine is lost, and a fence device answers: Pacemaker beside a supervisor with `fence`.

Three machines on one bridge, booted by systemd-nspawn from one Debian 12 with Debian's Pacemaker and
corosync, have one application. systemd starts it, and it stamps ten times a second by the clock that all
machines share. This is not one of the rows of `python -m bench`: `python -m bench pacemaker` makes the
Debian once, needs root, and takes an hour.

- consul-supervisor: a server of Consul on each machine, with `raft_multiplier: 1` and Consul's own gossip;
  `session: {ttl: 10s, lock_delay: 45s, node_checks: [serfHealth]}`, and `fence` with `after: 1s` and
  `exclusive: true`. Once more with Consul's leading server off and on the machine that is lost, and once with
  quicker gossip (docs/safety.md) and `after: 0s`, as Pacemaker has its shorter token.
- Pacemaker: the settings as Debian has them. A cluster that pcs makes has a token of 3.65 s for three
  nodes as well. Once more with `token: 1000`, which is 1.65 s for three.

Both have the same device, which kills the machine of that name within some 0.1 s. *Killed* means that the
first process of the machine is killed, and the kernel ends all others at once. *Paused* means that all of
its processes stop for 25 s, while its clock goes on, and then they go on, if the machine is still there. A
figure begins at the loss and ends with the first stamp on another machine. *Both act* is the time in which
two machines stamped. Before the next try the lost machine boots again, and the cluster comes to rest.

Nothing else keeps the coordinator of Pacemaker or the leading server of Consul from the machine that is lost.
Each try of ours is printed with the steps of its way, and whose each second was (``bench.way``).
"""

import argparse
import os
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from bench.lab import ROOT, CannotMeasure, Lab
from bench.trios import KILLED, PAUSED, SYSTEMS, Sample
from bench.way import shares
from tests.system.machine.machine import PACEMAKER

NAME = "pacemaker"
TRIES = 5  # of each loss
HEADINGS = ("system", "loss", "median", "worst", "both act, worst")
RULER = ("---", "---", "---:", "---:", "---:")
GET_DEBIAN = ROOT / "tests" / "system" / "machine" / "get_debian.sh"
PACKAGES = ("pacemaker", "corosync")


def parser() -> argparse.ArgumentParser:
    """Return the parser of what follows the name of this target."""
    made = argparse.ArgumentParser(prog=f"python -m bench {NAME}", allow_abbrev=False)
    made.add_argument("systems", nargs="*", default=[""], help="how their names begin; default: all")
    made.add_argument("--tries", type=int, default=TRIES, help="of each loss; default: %(default)s")
    made.add_argument(
        "--at-once", type=int, default=1, help="so many systems side by side; default: %(default)s"
    )
    return made


def prepare() -> str:
    """Make the Debian, and return the versions of what comes from it."""
    if os.geteuid() != 0:
        raise CannotMeasure("machines need root; run it with sudo")
    if subprocess.run([str(GET_DEBIAN), NAME], check=False).returncode:
        raise CannotMeasure(f"{GET_DEBIAN.name} failed, as it says above")
    asked = ["dpkg-query", f"--admindir={PACEMAKER}/var/lib/dpkg", "-W", "-f", "${Package} ${Version}\n"]
    told = subprocess.run([*asked, *PACKAGES], capture_output=True, text=True, check=True).stdout
    return ", ".join(sorted(told.splitlines(), reverse=True))


def measure(lab: Lab, tries: int, systems: Sequence[str], at_once: int) -> str:
    """Lose machines of each system, and return the table in Markdown."""
    chosen = [name for name in SYSTEMS if name.startswith(tuple(systems))]
    with ThreadPoolExecutor(at_once) as pool:
        measured = list(pool.map(lambda name: [*_rows(lab, name, tries)], chosen))
    rows = [row for each in measured for row in each]
    return "\n".join(f"| {' | '.join(row)} |" for row in (HEADINGS, RULER, *rows))


def _told(sample: Sample) -> str:
    """Return the sample in words, with whose each second was."""
    told = f"{sample.next_s:.2f} s, both act {sample.both_s:.2f} s"
    if not sample.way:
        return told
    steps = ", ".join(f"{step.name} {step.at_s:.2f}" for step in sample.way)
    whose = ", ".join(f"{who} {seconds:.2f} s" for who, seconds in shares(sample.way).items())
    leader = " with Consul's leader" if sample.had_leader else ""
    return f"{told}{leader} [{steps}] {whose}"


def _rows(lab: Lab, name: str, tries: int) -> Iterator[Sequence[str]]:
    with lab.rig() as rig, SYSTEMS[name](rig.folder / "machines") as machines:
        for how in (KILLED, PAUSED):
            samples = []
            for number in range(1, tries + 1):
                samples.append(machines.lose(how))
                lab.say(f"{name}, {how}, {number} of {tries}: {_told(samples[-1])}")
            next_s = [sample.next_s for sample in samples]
            both_s = max(sample.both_s for sample in samples)
            seconds = (statistics.median(next_s), max(next_s), both_s)
            yield name, how, *(f"{each:.1f} s" for each in seconds)
