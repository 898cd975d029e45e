"""python -m bench: measure, print one table, name what misses its limit and then exit 1."""

import argparse
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FrameType

from bench import handover, load, lock, loss, many, pacemaker, page, resources, shots, start
from bench.figures import Figure, markdown_table, plain_table
from bench.lab import CannotMeasure, Lab
from tests.support.consul import BINARY

ROWS: dict[str, Callable[[Lab], Iterable[Figure]]] = {
    "machine-loss": loss.measure,
    "machine-loss-gossip": loss.measure_gossip,
    "handover": handover.measure,
    "lock": lock.measure,
    "resources": resources.measure,
    "load": load.measure,
    "start": start.measure,
    "many": many.measure,
    "one-shot": shots.measure,
}
EPILOG = f"rows: {', '.join(ROWS)}. A target of its own, with options of its own: {pacemaker.NAME}"
DONE, MISSED, NOT_MEASURED, INTERRUPTED = 0, 1, 69, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the arguments name, and return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        if arguments[:1] == [pacemaker.NAME]:
            return _beside_pacemaker(arguments[1:])
        return _rows(arguments)
    except CannotMeasure as error:
        print(f"bench: cannot measure: {error}", file=sys.stderr)
        return NOT_MEASURED
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return INTERRUPTED


def _beside_pacemaker(arguments: Sequence[str]) -> int:
    """Print the table of that target."""
    options = pacemaker.parser().parse_args(arguments)
    machine, versions = _machine(), pacemaker.prepare()
    with Lab(quick=False) as lab:
        table = pacemaker.measure(lab, options.tries, options.systems, options.at_once)
        print(f"{machine}; {versions}\n\n{table}")
    return DONE


def _rows(arguments: Sequence[str]) -> int:
    """Measure the rows that the arguments name."""
    options = _parser().parse_args(arguments)
    began = time.monotonic()
    machine = _machine()
    with Lab(quick=options.quick) as lab:
        measured, failed, left_out = _measure(lab, options.rows or list(ROWS))
    for why in left_out:
        print(f"bench: cannot measure {why}", file=sys.stderr)
    if left_out and not measured and not failed:
        return NOT_MEASURED
    figures = [figure for row in measured.values() for figure in row]
    if options.page:
        _write_page(machine, measured)
    table = markdown_table(figures) if options.markdown else plain_table(figures)
    took_s = time.monotonic() - began
    few = ", quick: few samples, no verdict to rely on" if options.quick else ""
    print(f"{machine}; measured in {took_s:.0f} s{few}\n\n{table}")
    verdict = _verdict(figures, failed)
    return NOT_MEASURED if verdict == DONE and left_out else verdict


def _measure(lab: Lab, names: Sequence[str]) -> tuple[dict[str, list[Figure]], list[str], list[str]]:
    """Return the figures of these rows, the errors of rows that failed, and why a row cannot be measured.

    Each figure is printed as soon as it is measured.
    """
    figures: dict[str, list[Figure]] = {}
    failed: list[str] = []
    left_out: list[str] = []
    for name in names:
        row = []
        try:
            for figure in ROWS[name](lab):
                lab.say("  ".join(figure.cells))
                row.append(figure)
            figures[name] = row
        except (TimeoutError, RuntimeError) as error:
            failed.append(f"{name}: {error}")
        except CannotMeasure as error:
            left_out.append(f"{name}: {error}")
    return figures, failed, left_out


def _write_page(machine: str, measured: Mapping[str, list[Figure]]) -> None:
    made = f"{time.strftime('%Y-%m-%d')}, {machine}"
    sections = {name: page.section(name, ROWS[name], made, figures) for name, figures in measured.items()}
    page.PAGE.write_text(page.with_sections(page.PAGE.read_text(), sections, [*ROWS, pacemaker.NAME]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, epilog=EPILOG, allow_abbrev=False
    )
    parser.add_argument("rows", nargs="*", type=_row, metavar="NAME", help="default: all rows")
    parser.add_argument("--quick", action="store_true", help="few samples: whether it works, not how well")
    parser.add_argument("--page", action="store_true", help="put what is measured into bench/measured.md")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    return parser


def _row(name: str) -> str:
    if name not in ROWS:
        raise argparse.ArgumentTypeError(f"no row is named {name}: there are {', '.join(ROWS)}")
    return name


def _machine() -> str:
    if not BINARY.exists():
        raise CannotMeasure(f"{BINARY} is not there; run `make setup`")
    said = subprocess.run([str(BINARY), "version"], capture_output=True, text=True, check=True).stdout
    return (
        f"{os.cpu_count()} cores, Python {platform.python_version()}, "
        f"{said.splitlines()[0]}, {platform.system()} {platform.release().partition('-')[0]}, "
        f"load average {os.getloadavg()[0]:.1f} before"
    )


def _verdict(figures: Sequence[Figure], failed: Sequence[str]) -> int:
    missed = [figure for figure in figures if figure.missed]
    for figure in missed:
        row, what, value, unit, limit, _ = figure.cells
        print(f"MISSED: {row}: {what}: {value} {unit}, limit {limit}")
    for why in failed:
        print(f"MISSED: {why}")
    return MISSED if missed or failed else DONE


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
