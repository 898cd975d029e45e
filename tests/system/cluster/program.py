"""The common parts of the programs that run a cluster: a folder, and an orderly end."""

import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

from tests.system.cluster.network import CannotRun

DONE, BROKEN, CANNOT_RUN, INTERRUPTED = 0, 1, 69, 130
LOG_TAIL = 4000  # characters


def exit_code_of(work: Callable[[], int]) -> int:
    """Run ``work``, and return its exit code, or that of what keeps it from its end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        return work()
    except CannotRun as error:
        print(f"cannot run the cluster: {error}", file=sys.stderr)
        return CANNOT_RUN
    except TimeoutError as error:
        print(f"the cluster did not come to it: {error}", file=sys.stderr)
        return BROKEN
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


@contextmanager
def working_folder(keep: Path | None) -> Iterator[Path]:
    """Yield a folder for data and logs: ``keep``, which stays, or one that is removed at the end."""
    with ExitStack() as exits:
        if keep is None:
            folder = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="cluster-")))
        else:
            folder = keep
            folder.mkdir(parents=True)
        try:
            yield folder
        except TimeoutError:
            show_logs(folder)
            raise


def say(text: str) -> None:
    print(text, flush=True)


def show_logs(folder: Path) -> None:
    """Print the end of every log, in which a reader may find the cause."""
    for log in sorted(folder.glob("*/*.log")):
        print(f"--- the end of {log.name}:\n{log.read_text(errors='replace')[-LOG_TAIL:]}", file=sys.stderr)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
