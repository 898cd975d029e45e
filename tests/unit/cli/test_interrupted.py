"""Ctrl-C before a command has begun, while its modules are imported, ends it as a later one does."""

import sys

import pytest

from tests.support.captured import captured
from tests.support.supervisor import ENVIRON, PATIENCE_S, ROOT

# ``consul-supervisor`` to which SIGINT comes when it imports the module of the first argument.
COMMAND = """
import signal, sys

class Interrupt:
    def find_spec(name, path, target=None):
        if name == module:
            signal.raise_signal(signal.SIGINT)

module = sys.argv.pop(1)
sys.meta_path.insert(0, Interrupt)
from supervisor.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("supervisor.adapters.runtime.signals", ("run", "c.yaml")),
        ("argparse", ("members", "app")),
        ("supervisor.reporting.control.protocol", ("members", "app")),  # by the parser, for a NAME
        ("supervisor.commands.cli.cluster_commands", ("members", "app")),
    ],
)
def test_ctrl_c_while_a_module_is_imported_ends_a_command_without_a_trace(
    module: str, arguments: tuple[str, ...]
) -> None:
    done = captured(
        [sys.executable, "-c", COMMAND, module, *arguments], cwd=ROOT, env=ENVIRON, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
