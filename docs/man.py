"""The man pages consul-supervisor(1) and consul-supervisor.yaml(5), which argparse-manpage writes.

    python -m docs.man FOLDER    writes the pages into the folder

The commands come from what argparse knows, and the keys of the configuration from its schema. The text of
the other sections is here.
"""

import argparse
import re
import sys
from datetime import date
from pathlib import Path

from argparse_manpage.manpage import Manpage

from docs import commands, reference
from supervisor import __version__
from supervisor.commands.cli.arguments import parser
from supervisor.commands.cli.exit_codes import OF_ALL
from supervisor.commands.cli.table import COMMANDS
from supervisor.commands.cli.table.spec import DEFAULT_CONFIG

NAME = "consul-supervisor"
CHANGELOG = reference.ROOT / "CHANGELOG.md"
CODES = {
    0: "done",
    1: "a negative answer, or the result cannot be written, for example to a full disk",
    69: "not reachable: neither yes nor no, because the daemon or Consul did not answer",
    78: "the configuration cannot be used",
    **OF_ALL,
}
FILES = {
    DEFAULT_CONFIG: f"the configuration: a folder with files *.yaml and *.yml, see {NAME}.yaml(5)",
    "/run/consul-supervisor/control.sock": "the control socket, by which commands reach the daemon",
    "/var/lib/consul-supervisor": "the records, which survive a crash of the daemon, and the events",
}
VARIABLES = {
    "CONSUL_HTTP_ADDR, CONSUL_HTTP_SSL": "the address of the Consul agent",
    "CONSUL_HTTP_TOKEN, CONSUL_HTTP_TOKEN_FILE": "the ACL token, or the file with the token",
    "CONSUL_HTTP_AUTH": "USER or USER:PASSWORD, for a proxy in front of Consul",
    "CONSUL_NAMESPACE, CONSUL_PARTITION": "namespace and partition of Consul Enterprise",
    "CONSUL_CACERT, CONSUL_CAPATH": "a file or a folder of authorities that may sign Consul's certificate",
    "CONSUL_CLIENT_CERT, CONSUL_CLIENT_KEY": "our certificate and its key",
    "CONSUL_TLS_SERVER_NAME": "the name that Consul's certificate must have",
    "CONSUL_HTTP_SSL_VERIFY": "false: Consul's certificate is not verified",
    "RUNTIME_DIRECTORY, STATE_DIRECTORY": "the folders of control socket and records, as systemd sets them",
    "CONSUL_SUPERVISOR_SOCKET": "the control socket to ask, if --socket and --config are missing",
    "NO_COLOR, COLUMNS": "output without colours; the width of tables",
}
EXAMPLES = {
    "Watch an election and a failover, without a Consul": "demo",
    "Check the configuration, and whether Consul can be used with it": f"check --connect {DEFAULT_CONFIG}",
    "Show this node's part in each election and semaphore": "status",
    "Run a job on the node that holds a lock, in a crontab": "holds backup && /usr/local/bin/backup",
    "Hand over before the maintenance of this node": "step-down namenode --for 1h --reason maintenance",
}
CONFIGURATION = """\
elections:
  app:
    on_acquire:
      - shell: systemctl start app
    on_lose:
      - shell: systemctl stop app
"""


def pages() -> dict[str, str]:
    """Return the text of each page, by its place below ``share``."""
    return {f"man/man1/{NAME}.1": _of_commands(), f"man/man5/{NAME}.yaml.5": _of_configuration()}


def write(folder: Path) -> None:
    """Write each page into the folder, which is made if it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, text in pages().items():
        (folder / Path(place).name).write_text(text, encoding="utf-8")


def _of_commands() -> str:
    whole = parser()
    whole.epilog = None  # the sections below say more
    for name, command in commands.commands(whole).items():
        _describe(name, command)
    page = _page(whole, 1, "hooks for this node's part in Consul elections and semaphores", "User Commands")
    page.add_section("exit status", "=", _entries({str(code): text for code, text in sorted(CODES.items())}))
    page.add_section("files", "=", _entries({str(path): text for path, text in FILES.items()}))
    page.add_section("environment", "=", _entries(VARIABLES))
    examples = {f"{title}:": f"{NAME} {example}" for title, example in EXAMPLES.items()}
    page.add_section("examples", "=", "\n.PP\n".join(map(_example, examples, examples.values())))
    page.add_section("see also", "=", f".BR {_escaped(NAME)}.yaml (5),\n.BR systemctl (1)")
    return str(page)


def _describe(name: str, command: argparse.ArgumentParser) -> None:
    """Set what the page shows of the command: the usage in one line, the example and the exit codes."""
    command.usage = commands.usage_of(command)
    command.description = f"For example: {NAME} {COMMANDS[name].example}"
    codes = command.add_argument_group("exit codes:")
    for code, meaning in COMMANDS[name].codes.items():
        if OF_ALL.get(code) != meaning:
            codes.add_argument(str(code), metavar=str(code), help=meaning.replace("%", "%%"))


def _of_configuration() -> str:
    keys = argparse.ArgumentParser(
        f"{NAME}.yaml",
        usage=f"{DEFAULT_CONFIG}/*.yaml",
        description=f"{NAME} reads one YAML file, or the files *.yaml and *.yml of a folder. A key that does "
        "not exist is refused.",
        formatter_class=argparse.RawDescriptionHelpFormatter,  # breaks no line by the width of a terminal
        add_help=False,
    )
    for title, definition, properties in reference.definitions():
        section = keys.add_argument_group(title, description=_plain(definition["description"]))
        for key, rule in properties:
            default = f" Default: {reference.default_of(rule)}." if "default" in rule else ""
            text = f"{reference.kind_of(rule)}. {rule['description']}"
            text += default if "Default:" not in text else ""
            section.add_argument(f"{title} {key}", metavar=key, help=_plain(text).replace("%", "%%"))
    page = _page(keys, 5, f"the configuration of {NAME}", "File Formats")
    page.add_section("files", "=", _entries({str(DEFAULT_CONFIG): FILES[DEFAULT_CONFIG].partition(",")[0]}))
    page.add_section("examples", "=", _example("An election whose holder runs a service:", CONFIGURATION))
    page.add_section("see also", "=", f".BR {_escaped(NAME)} (1)")
    return str(page)


def _page(described: argparse.ArgumentParser, section: int, summary: str, manual: str) -> Manpage:
    (released, *_) = re.findall(r"^## \[.+\] - (\S+)$", CHANGELOG.read_text(encoding="utf-8"), re.MULTILINE)
    about = {
        "date": f"{date.fromisoformat(released):%B %d, %Y}",  # of a release, so that two builds are equal
        "project_name": NAME,
        "version": __version__,
        "manual_title": manual,
        "manual_section": section,
        "description": summary,
    }
    return Manpage(described, about, format="single-commands-section")


def _entries(texts: dict[str, str]) -> str:
    return "\n".join(f".TP\n\\fB{_escaped(name)}\\fR\n{_escaped(text)}" for name, text in texts.items())


def _example(title: str, lines: str) -> str:
    return f"{_escaped(title)}\n.PP\n.RS 4\n.nf\n{_escaped(lines.rstrip())}\n.fi\n.RE"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-")


def _plain(markdown: str) -> str:
    return markdown.replace("`", "")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
