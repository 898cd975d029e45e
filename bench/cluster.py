"""python -m bench cluster: many faults on a real cluster, then our supervisor against `consul lock`.

This is no row of the table, because it needs root and a long time. The figures are in docs/lease.md.
"""

import argparse
import os
from collections.abc import Sequence

from bench.versus import compare, markdown
from tests.system.cluster.__main__ import add_options
from tests.system.cluster.campaign import run_campaign
from tests.system.cluster.cluster import Cluster
from tests.system.cluster.program import BROKEN, DONE, in_own_network, say, show_logs, working_folder

NAME = "cluster"


def main(arguments: Sequence[str]) -> int:
    """Run both parts in one cluster, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench cluster", description=__doc__, allow_abbrev=False)
    add_options(parser, faults=100)
    parser.add_argument("--no-compare", action="store_true", help="only the faults, without `consul lock`")
    options = parser.parse_args(arguments)
    return in_own_network("bench", [NAME, *arguments], lambda: _measure(options))


def _measure(options: argparse.Namespace) -> int:
    say(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} before")
    with working_folder(options.keep) as folder:
        with Cluster(folder) as cluster:
            verdict = run_campaign(cluster, options.seed, options.faults, say)
            results = [] if options.no_compare or verdict.lost_its_cluster else compare(cluster, say)
        if verdict.complaints:
            show_logs(folder)
    say(verdict.summary)
    if results:
        say(f"\n{markdown(results)}")
    return BROKEN if verdict.complaints else DONE
