"""``complete`` prints the names that can follow in a command line; shells run it at each press of TAB."""

import json
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hung import hung, needs_root
from tests.support.patience import PATIENCE_S
from tests.support.supervisor import COMMAND, ENVIRON, ROOT, command, until
from tests.support.unix_peer import UnixPeer, answer_of
from tests.unit.cli.test_table import item, status

CONFIG = """\
elections:
  web: {on_lose: [{shell: "systemctl stop web"}]}
  api: {unknown: key}
  "$(reboot)": {}
semaphores:
  rebuild: {limit: 2}
consul: {token: "${UNSET}"}
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="complete-") as folder:
        (Path(folder) / "c.yaml").write_text(CONFIG)
        (Path(folder) / "consul-supervisor").mkdir()
        (Path(folder) / "consul-supervisor" / "other.yaml").write_text("elections: {other: {}}")
        yield Path(folder)


def expect(line: str, names: str, **environ: str) -> None:
    """Repeat the command until its second is long enough on a busy machine, and compare what it prints."""

    def done() -> str:
        done = command("complete", "--", line, environ=environ)
        assert done.returncode in (0, -signal.SIGALRM) and not done.stderr, done
        return f"{done.returncode} {done.stdout}" if done.returncode == 0 else ""

    assert until(done, "it ends in time") == f"0 {names}"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("consul-supervisor members --config {folder}/c.yaml ", "api\nrebuild\nweb\n"),
        ("verify --config={folder}/c.yaml --lock-index 7 ", "api\nrebuild\nweb\n"),
        ("sudo -u run /opt/bin/consul-supervisor leader --config '{folder}/c.yaml' w", "api\nweb\n"),
        ("limit --config $PLACE/c.yaml ", "rebuild\n"),
        ("test-hook --config ~/c.yaml ", "api\nrebuild\nweb\n"),
        ("drill --hooks real {folder} web ", "api\nrebuild\nweb\n"),
        ("members --config {folder}/consul-supervisor ", "other\n"),
        ("sudo consul-supervisor members --config {folder}/consul-supervisor ", "other\n"),
        ("alias members --config {folder}/c.yaml ", "api\nrebuild\nweb\n"),
        ("members --config {folder}/none.yaml ", ""),
        ("members --config '{folder}", ""),
        ("consul-supervisor ", ""),
        ("", ""),
    ],
)
def test_names_come_from_the_configuration_that_the_line_names(
    line: str, expected: str, folder: Path
) -> None:
    """Its other faults do not matter, and a name that no item can have is left out."""
    expect(line.format(folder=folder), expected, HOME=str(folder), PLACE=str(folder))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("consul-supervisor wait --for ", "holding\nleader\ncandidate\nfree\n"),
        ("sudo consul-supervisor wait app --for=h", "holding\nleader\ncandidate\nfree\n"),
        ("lock --on-lost K", "TERM\nKILL\n"),
        ("step-down app --to ", ""),
        ("lock -n ", ""),
        ("members --config ", ""),
    ],
)
def test_the_value_of_an_option_is_one_of_its_choices(line: str, expected: str) -> None:
    """An option without choices has no words here, because a shell itself completes files."""
    expect(line, expected)


def test_names_come_from_the_daemon_if_the_command_asks_it(folder: Path) -> None:
    items = [item("database"), item("slots", kind="semaphore"), item("$(reboot)")]
    socket = folder / "c.sock"
    with UnixPeer(socket, lambda: answer_of(json.dumps(status(*items)).encode())):
        expect(f"holds --socket {socket} ", "database\nslots\n")
        expect(f"members --config {folder}/c.yaml ", "api\nrebuild\nweb\n")


@pytest.mark.parametrize("answer", [[], answer_of(b"{}"), answer_of(b"no JSON"), [b"no HTTP"]])
def test_names_come_from_the_configuration_if_the_daemon_does_not_answer(
    answer: list[bytes], folder: Path
) -> None:
    with UnixPeer(folder / "c.sock", lambda: answer, stay=True):
        expect(f"holds --socket {folder}/c.sock --config {folder}/c.yaml ", "api\nrebuild\nweb\n")


@needs_root
def test_a_file_system_that_does_not_answer_ends_it_after_a_second(folder: Path) -> None:
    with hung(folder):
        done = subprocess.run(
            [*COMMAND, "complete", "--", f"members --config {folder}/c.yaml "],
            check=False,
            capture_output=True,
            cwd=ROOT,
            env=ENVIRON,
            timeout=PATIENCE_S,
        )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGALRM, b"", b"")


@pytest.mark.parametrize(
    "line", ["flly ", "check ", "plan ", "help ", "lock ", "lock --ttl", "lock key -- foo "]
)
def test_a_line_that_no_name_can_follow_has_none(line: str) -> None:
    done = command("complete", "--", f"consul-supervisor {line}")
    assert (done.returncode, done.stdout) == (0, "") and "Traceback" not in done.stderr
