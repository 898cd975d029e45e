"""The Debian package on bare machines of Debian 12 and 13: from its installation to its purge.

apt takes the dependencies from Debian's own packages. The tests of a machine follow one another.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.config.environment_file import parse
from tests.support.supervisor import until
from tests.system.machine.machine import BOOKWORM, TRIXIE, Machine
from tests.system.machine.node import CONFIG, DROP_INS, EVENTS, UNIT, Node
from tests.system.machine.packages import FOLDER, give_package, make_package

COMMAND = "consul-supervisor"
INSTALL = f"apt-get install -q --yes --no-install-recommends /{FOLDER}/consul-supervisor_*.deb"
OTHERS = "/usr/lib/python3/dist-packages/supervisor/__init__.py"
VARIABLES = "/etc/default/consul-supervisor"
TEXT = """# a comment, which ends here
KEY=test/package
TWO = two words  \n; another comment
QUOTED="a \\"b\\" \\$c \\d" 'e"f'g h
ESCAPED=a\\ b\\\\c \\
 d
SEVERAL='one
two'
export NO=1
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the package of this tree, and a later one."""
    folder = tmp_path_factory.mktemp("packages")
    return make_package(folder / "now"), make_package(folder / "later", "99.0")


@pytest.fixture(scope="module", params=[BOOKWORM, TRIXIE], ids=lambda tree: str(tree.name))
def bare(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, packages: tuple[Path, Path]
) -> Iterator[Node]:
    """Yield a machine with a Consul, the package's file, and another package's `supervisor`."""
    with Machine(tmp_path_factory.mktemp("bare") / "machine", tree=request.param) as machine:
        node = Node(machine)
        node.key = "test/package"
        node.install_consul()
        give_package(machine, packages[0])
        machine.write(OTHERS, "raise ImportError('this is the supervisor of another package')\n")
        machine.did("apt-get update -q")
        yield node


def token(node: Node) -> str:
    """Return the LockIndex of the key, which every failover changes."""
    shown = node.consul("kv", "get", "-detailed", node.key).splitlines()
    return next(line for line in shown if line.startswith("LockIndex"))


def test_apt_installs_it_and_without_a_configuration_nothing_fails(bare: Node) -> None:
    bare.machine.did(INSTALL)
    assert bare.machine.did(f"systemctl is-enabled {UNIT}") == "enabled\n"
    bare.start()
    assert bare.show("ActiveState", "ConditionResult") == ["inactive", "no"]
    assert bare.machine.did("systemctl is-system-running") == "running\n"
    assert bare.machine.did("stat -c '%a %U:%G' /etc/consul-supervisor") == "755 root:root\n"
    assert bare.machine.did(f"stat -c '%a %U:%G' {VARIABLES}") == "640 root:root\n"
    bare.machine.did("find /usr/share/consul-supervisor -name '*.pyc' | grep -q .")


def test_check_and_the_daemon_get_the_variables_of_the_file(bare: Node) -> None:
    bare.machine.write(VARIABLES, TEXT, 0o640)
    bare.configure(app=bare.election(key="${KEY}"))
    checked = bare.machine.did(f"{COMMAND} check --here /etc/consul-supervisor")
    assert f"  key          {bare.key}\n" in checked
    assert f"{VARIABLES}:10:1: systemd ignores this line" in checked
    shown = bare.machine.did(
        f"systemd-run -q --wait --pipe -p EnvironmentFile={VARIABLES} env -0 | tr '\\0\\n' '\\n|'"
    )
    of_systemd = dict(line.split("=", 1) for line in shown.splitlines())
    values = parse(TEXT).values
    assert len(values) == 5
    assert {name: of_systemd[name] for name in values} == {
        name: value.replace("\n", "|") for name, value in values.items()
    }
    bare.start()
    bare.wait_holds()
    assert bare.events() == ["acquire acquired"]


def test_an_upgrade_of_a_leader_runs_no_hook_and_keeps_the_token(
    bare: Node, packages: tuple[Path, Path]
) -> None:
    session, held, before = bare.holder(), token(bare), bare.pid
    give_package(bare.machine, packages[1])
    bare.machine.did(INSTALL)
    assert bare.machine.did(f"{COMMAND} --version") == "consul-supervisor 99.0\n"
    bare.wait_new_process(before)
    assert bare.wait_holds() == session
    assert (token(bare), bare.events()) == (held, ["acquire acquired"])
    assert bare.machine.read(VARIABLES) == TEXT


def test_an_upgrade_to_a_version_that_refuses_the_configuration_restarts_nothing(bare: Node) -> None:
    session = bare.holder()
    with bare.changed(CONFIG, "elections: {app: {kee: a}}\n"):
        done = bare.machine.sh(INSTALL.replace("--yes", "--yes --reinstall"))
        assert done.returncode == 0, done
        assert f"{CONFIG}:1:19: elections.app.kee: " in done.stdout
        assert "a reboot would keep what this node holds" in done.stdout
        bare.machine.did(f"systemctl restart {UNIT}")  # as the text and `status` say
        assert bare.wait_holds() == session
        before = bare.pid
        with bare.changed("/var/lib/consul-supervisor/accepted.json", None):
            done = bare.machine.sh(INSTALL.replace("--yes", "--yes --reinstall"))
        assert "would leave what this node holds without a supervisor" in done.stdout
        assert (bare.pid, bare.holder()) == (before, session)
    bare.machine.did(f"systemctl restart {UNIT}")
    assert bare.wait_holds() == session
    assert bare.events() == ["acquire acquired"]


def test_an_upgrade_starts_no_daemon_that_an_operator_has_stopped(bare: Node) -> None:
    bare.machine.did(f"systemctl stop {UNIT}")
    bare.machine.did(INSTALL.replace("--yes", "--yes --reinstall"))
    assert bare.show("ActiveState") == ["inactive"]
    bare.start()
    bare.wait_holds()
    bare.machine.did(f"echo acquire acquired >{EVENTS}")


def test_an_upgrade_checks_with_the_variables_of_the_running_process(bare: Node) -> None:
    drop_in = f"{DROP_INS}/key.conf"
    session, before, usual = bare.holder(), bare.pid, bare.machine.read(CONFIG)
    with (
        bare.changed(drop_in, f"[Service]\nEnvironment=OTHER={bare.key}\n"),
        bare.changed(CONFIG, usual.replace("${KEY}", "${OTHER}")),
    ):
        bare.machine.did(f"systemctl daemon-reload; systemctl restart {UNIT}")
        between = bare.wait_new_process(before)
        assert bare.wait_holds() == session
        told = bare.machine.did(INSTALL.replace("--yes", "--yes --reinstall"))
        assert bare.pid != between, told
        assert bare.wait_holds() == session
    bare.machine.did(f"systemctl daemon-reload; systemctl restart {UNIT}")
    assert bare.wait_holds() == session


def test_a_removal_hands_over_and_an_installation_finds_the_configuration(bare: Node) -> None:
    bare.machine.did(f"apt-get remove -q --yes {UNIT}")
    assert bare.events() == ["acquire acquired", "lose shutdown"]
    assert bare.holder() == ""
    assert bare.machine.read(CONFIG)
    bare.machine.did(INSTALL)
    until(lambda: bare.events()[2:] == ["acquire acquired"], "it holds again", 60.0)


def test_a_purge_leaves_nothing(bare: Node) -> None:
    bare.machine.did(f"apt-get purge -q --yes {UNIT}; rm {EVENTS}; rm -r /{FOLDER}/consul-supervisor_*")
    assert bare.holder() == ""
    left = "find / /run -xdev -name '*consul-supervisor*' -not -path '/proc/*' -not -path '/sys/*'"
    assert bare.machine.did(left) == ""
    assert bare.machine.did("find /usr/share -name __pycache__ -path '*consul*'") == ""
    assert bare.machine.did("systemctl is-system-running") == "running\n"
