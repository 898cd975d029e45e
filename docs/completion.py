"""The completion for bash, zsh and fish, which shtab makes from what argparse knows.

    python -m docs.completion FOLDER    writes the files into the folder

The files have the names by which the shells find them. Names of elections and semaphores are found when TAB
is pressed, by ``consul-supervisor complete``.
"""

import argparse
import sys
from pathlib import Path

import shtab

from docs.commands import commands
from supervisor.commands.cli import values
from supervisor.commands.cli.arguments import parser
from supervisor.commands.cli.table.spec import ARGV

PLACES = {  # below /usr/share and the like
    "bash": "bash-completion/completions/consul-supervisor",
    "zsh": "zsh/site-functions/_consul-supervisor",
    "fish": "fish/vendor_completions.d/consul-supervisor.fish",
}
NAMES = {
    "bash": "_consul_supervisor_names",
    "zsh": "_consul_supervisor_names",
    "fish": "(consul-supervisor complete -- (commandline -cp) 2>/dev/null)",
    "preamble": {
        "bash": """
_consul_supervisor_names() {
  compgen -W "$(consul-supervisor complete -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)" -- "$1"
}""",
        "zsh": """
_consul_supervisor_names() {
  local -a names
  names=(${(f)"$(consul-supervisor complete -- "${words[1,CURRENT-1]} " 2>/dev/null)"})
  compadd "$@" -a names
}""",
    },
}


def scripts() -> dict[str, str]:
    """Return the script for each shell, by its place below ``share``."""
    return {place: _script(shell) for shell, place in PLACES.items()}


def write(folder: Path) -> None:
    """Write the script for each shell into the folder, which is made if it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, text in scripts().items():
        (folder / Path(place).name).write_text(text, encoding="utf-8")


def _script(shell: str) -> str:
    whole = parser()
    for command in commands(whole).values():
        for action in command._actions:
            _add_completion(action)
    return str(shtab.complete(whole, shell)) + "\n"


def _add_completion(action: argparse.Action) -> None:
    """Set the attribute ``complete`` or ``choices``, by which shtab learns what can follow."""
    if action.type is values.name:
        action.complete = NAMES  # type: ignore[attr-defined]
    elif action.metavar == "DIR":
        action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    elif action.type in (Path, values.socket) or action.dest == ARGV:
        action.complete = shtab.FILE  # type: ignore[attr-defined]
    elif action.dest == "topic":
        action.choices = list(commands())


if __name__ == "__main__":
    write(Path(sys.argv[1]))
