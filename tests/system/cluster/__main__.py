"""python -m tests.system.cluster: break a real cluster, and judge whether two nodes ever held at once."""

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.system.cluster.campaign import run_campaign
from tests.system.cluster.cluster import Cluster
from tests.system.cluster.program import BROKEN, DONE, exit_code_of, say, show_logs, working_folder


def main(arguments: Sequence[str]) -> int:
    """Run one campaign and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.system.cluster", description=__doc__, allow_abbrev=False
    )
    add_options(parser, faults=12)
    parser.add_argument(
        "--servers", action="store_true", help="only faults of the leading server, beside a quick file"
    )
    parser.add_argument(
        "--fence", action="store_true", help="the supervisors have a fence, which kills the former holder's"
    )
    options = parser.parse_args(arguments)
    return exit_code_of(lambda: _broken(options))


def add_options(parser: argparse.ArgumentParser, faults: int) -> None:
    chosen = random.SystemRandom().randrange(10_000)
    parser.add_argument(
        "--faults", type=int, default=faults, metavar="N", help=f"how many (default {faults})"
    )
    parser.add_argument(
        "--seed", type=int, default=chosen, metavar="N", help="the same faults in the same order"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="a new folder for all logs, which stays")


def _broken(options: argparse.Namespace) -> int:
    with working_folder(options.keep) as folder:
        with Cluster(folder) as cluster:
            verdict = run_campaign(cluster, options.seed, options.faults, say, options.servers, options.fence)
        if verdict.complaints:
            show_logs(folder)
    say(verdict.summary)
    return BROKEN if verdict.complaints else DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
