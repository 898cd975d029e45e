"""The example as a collection: it is clean by Ansible's own rules, and can be built, installed and played."""

import os
import re
import shutil
import sys
import tarfile
from pathlib import Path

import pytest

from tests.support.captured import captured
from tests.system.machine.fleet import ANSIBLE, EXAMPLE

NAME = "consul_supervisor.consul_supervisor"
HOME = ANSIBLE.parent / "home"  # of tests/setup/get_ansible.sh
RUN_S = 600.0  # the first run of ansible-test installs what it needs


def run(program: str, *arguments: str, folder: Path = EXAMPLE, home: Path | None = None) -> str:
    """Run one of Ansible's programs, which must end with 0, and return its output.

    home: where Ansible keeps collections and all else. None: below HOME.
    """
    homes = {"ANSIBLE_HOME": str(home), "ANSIBLE_COLLECTIONS_PATH": str(home)} if home else {}
    environ = {
        "HOME": str(HOME),
        "PATH": f"{ANSIBLE}:{os.environ['PATH']}",
        "PYTHONWARNINGS": "",
        "NO_COLOR": "1",
        "PIP_NO_COMPILE": "1",  # ansible-test makes a venv for each of its tests
    }
    ran = captured(
        [str(ANSIBLE / program), *arguments],
        cwd=folder,
        env={**os.environ, **environ, **homes},
        timeout=RUN_S,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def test_the_collection_is_clean_by_the_rules_of_production(tmp_path: Path) -> None:
    """It stands where it is installed, because its playbook names its own modules."""
    home = tmp_path / "ansible_collections" / NAME.replace(".", "/")
    shutil.copytree(EXAMPLE, home, ignore=shutil.ignore_patterns("__pycache__"))
    printed = run(
        *("ansible-lint", "--offline", "--strict", "--profile", "production", "."),
        folder=home,
        home=tmp_path,
    )
    assert "Profile 'production' was required, and it passed" in printed


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the collection is installed from the archive that was built of it."""
    folder = tmp_path_factory.mktemp("home")
    run("ansible-galaxy", "collection", "build", "--output-path", str(folder), home=folder)
    (archive,) = folder.glob(f"{NAME.replace('.', '-')}-*.tar.gz")
    with tarfile.open(archive) as files:
        unit = files.getmember("roles/consul_supervisor/files/consul-supervisor.service")
        assert unit.isfile()  # the checkout has a link, which leads out of the collection
        assert not {"ansible.cfg", "inventory.yml"} & set(files.getnames())
    run("ansible-galaxy", "collection", "install", "--offline", str(archive), folder=folder, home=folder)
    return folder


def test_a_collection_is_built_installed_and_its_playbook_is_found_by_name(
    home: Path, tmp_path: Path
) -> None:
    inventory = tmp_path / "inventory.yml"
    inventory.write_text("consul_supervisor: {hosts: {node1: {}}}\n")
    play = [*("-i", str(inventory)), "--syntax-check"]
    for found in ("site", "patch"):
        run("ansible-playbook", *play, f"{NAME}.{found}", folder=tmp_path, home=home)
    playbook = tmp_path / "play.yml"
    playbook.write_text(f"[{{hosts: all, roles: [{NAME}.consul_supervisor]}}]\n")
    run("ansible-playbook", *play, str(playbook), folder=tmp_path, home=home)
    explained = run("ansible-doc", "--type", "role", f"{NAME}.consul_supervisor", folder=tmp_path, home=home)
    assert "consul_supervisor_state" in explained
    for module in sorted(each.stem for each in (EXAMPLE / "plugins" / "modules").iterdir()):
        assert "check_mode" in run("ansible-doc", f"{NAME}.{module}", folder=tmp_path, home=home)
    assert "OPTIONS" in run("ansible-doc", "-t", "lookup", f"{NAME}.leader", folder=tmp_path, home=home)


def test_the_collection_passes_each_sanity_test_of_ansible(home: Path) -> None:
    """On this Python alone."""
    collection = home / "ansible_collections" / NAME.replace(".", "/")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    printed = run("ansible-test", "sanity", "--color", "no", "--python", python, folder=collection)
    ran = set(re.findall(r'^Running sanity test "([^"]+)"', printed, re.MULTILINE))
    assert ran >= {"ansible-doc", "import", "pep8", "pylint", "validate-modules", "yamllint"}, printed
