"""python -m tests.system.cluster: break a real cluster, and judge whether two nodes ever held at once."""

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.system.cluster import room
from tests.system.cluster.campaign import Campaign
from tests.system.cluster.cluster import Cluster
from tests.system.cluster.faults import KINDS, LEADER_KINDS, OUTAGE_KINDS, plan
from tests.system.cluster.program import BROKEN, DONE, exit_code_of, say, show_logs, working_folder


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.system.cluster", description=__doc__, allow_abbrev=False
    )
    chosen = random.SystemRandom().randrange(10_000)
    parser.add_argument("--faults", type=int, default=12, metavar="N", help="how many (default 12)")
    parser.add_argument(
        "--seed", type=int, default=chosen, metavar="N", help="the same faults in the same order"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="a new folder for all logs, which stays")
    parser.add_argument(
        "--servers", action="store_true", help="only faults of the leading server, beside a quick file"
    )
    parser.add_argument(
        "--fence", action="store_true", help="the supervisors have a fence, which kills the former holder's"
    )
    parser.add_argument(
        "--outage", action="store_true", help="the same with `outage`, and all servers stop now and then"
    )
    parser.add_argument(
        "--kind", choices=sorted(OUTAGE_KINDS), help="only faults of this kind, with `outage`"
    )
    parser.add_argument(
        "--elections", type=int, default=1, metavar="N", help="how many; with several, of one fleet"
    )
    parser.add_argument(
        "--room", action="store_true", help="only this: six machines that lead are cut off at once"
    )
    options = parser.parse_args(arguments)
    if options.room:
        return exit_code_of(lambda: room.run(options.keep))
    return exit_code_of(lambda: _broken(options))


def _broken(options: argparse.Namespace) -> int:
    with working_folder(options.keep) as folder:
        with Cluster(folder) as cluster:
            say(f"{options.faults} faults of seed {options.seed}")
            kinds = LEADER_KINDS if options.servers else OUTAGE_KINDS if options.outage else KINDS
            outage = options.outage or options.kind is not None
            campaign = Campaign(cluster, options.servers, options.fence or outage, outage, options.elections)
            verdict = campaign.run(
                plan(options.seed, options.faults, [options.kind] if options.kind else kinds)
            )
        if verdict.complaints:
            show_logs(folder)
    say(verdict.summary)
    return BROKEN if verdict.complaints else DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
