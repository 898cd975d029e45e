"""The Debian package: its contents and modes, Debian's own checks, and that equal sources give equal bytes.

tests/system/machine/test_package.py installs it on booted machines.
"""

import os
import shutil
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import supervisor
from docs import completion, man
from tests.support.captured import captured
from tests.system.packaging.builds import ROOT, SCHEMA, clean_environ, copy_tree, run

PRIVATE = "./usr/share/consul-supervisor/"
DOC = "./usr/share/doc/consul-supervisor/"
EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}


def debian(version: str) -> str:
    """Return the version of the package of this version."""
    argv = ["sed", "-E", "-f", str(ROOT / "debian" / "version.sed")]
    return captured(argv, input=version).stdout + "-1"


def build(tree: Path, **environ: str) -> Path:
    """Build the package in this tree, which stays as it is except for dist/, and return the package."""
    (before, printed, after) = (
        files_of(tree),
        run("debian/build.sh", cwd=tree, environ={**EPOCH, "PYTHON": sys.executable, **environ}),
        files_of(tree),
    )
    name = f"dist/consul-supervisor_{debian(supervisor.__version__)}_all.deb"
    assert printed == f"{name}\n"
    assert after == before
    return tree / name


def files_of(tree: Path) -> set[Path]:
    return {path for path in tree.rglob("*") if "dist" not in path.parts}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the package of a fresh copy of this tree."""
    return build(copy_tree(tmp_path_factory.mktemp("debian") / "tree"))


def test_the_package_has_the_program_its_unit_and_its_pages(package: Path) -> None:
    lines = [line.split(maxsplit=5) for line in run("dpkg-deb", "-c", str(package), cwd=ROOT).splitlines()]
    modes = {words[5]: " ".join(words[:2]) for words in lines}
    modules = {str(module.relative_to(ROOT)) for module in (ROOT / "supervisor").rglob("*.py")}
    data = {"supervisor/py.typed", f"supervisor/{SCHEMA}", "supervisor/reporting/web/page.html"}
    shipped = {name.removeprefix(PRIVATE) for name in modes if name.startswith(PRIVATE)}
    assert {name for name in shipped if not name.endswith("/") and name} == modules | data
    pages = {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    pages |= {"README.md", SCHEMA, "examples/configs/minimal.yaml", "systemd/loosen-sudo.conf", "copyright"}
    assert {f"{DOC}{page}" for page in pages} <= modes.keys()
    generated = {f"{page}.gz" for page in man.pages()} | set(completion.PLACES.values())
    assert {f"./usr/share/{file}" for file in generated} <= modes.keys()
    assert modes["./etc/default/consul-supervisor"] == "-rw-r----- root/root"
    assert modes["./etc/consul-supervisor/"] == "drwxr-xr-x root/root"
    assert modes["./usr/bin/consul-supervisor"] == "-rwxr-xr-x root/root"
    assert not [name for name in modes if "/dist-packages/" in name or "__pycache__" in name]


def test_each_build_is_an_upgrade_of_the_one_before() -> None:
    """Apt sees which of two builds is later, and a release is later than all that led to it."""
    built = [
        "0.2.0",
        "0.3.0.dev9+gf0a1.d20261128",
        "0.3.0.dev10+g00b2",
        "0.3.0rc1.dev2+gb1",
        "0.3.0rc1",
    ]
    built += ["0.3.0", "0.3.1.dev1+gb1", "0.3.1"]
    for former, later in pairwise(map(debian, built)):
        assert captured(["dpkg", "--compare-versions", former, "lt", later]).returncode == 0, (former, later)


def test_the_only_conffile_is_that_of_the_variables(package: Path, tmp_path: Path) -> None:
    run("dpkg-deb", "-e", str(package), str(tmp_path), cwd=ROOT)
    assert (tmp_path / "conffiles").read_text() == "/etc/default/consul-supervisor\n"


def test_the_units_paths_are_those_of_the_package(package: Path, tmp_path: Path) -> None:
    run("dpkg-deb", "-x", str(package), str(tmp_path), cwd=ROOT)
    (unit,) = tmp_path.rglob("system/consul-supervisor.service")
    text = unit.read_text()
    assert "/opt/" not in text
    assert "\nExecStart=/usr/bin/consul-supervisor run /etc/consul-supervisor\n" in text
    assert "\nDocumentation=file:///usr/share/doc/consul-supervisor/README.md\n" in text
    assert text.count("\nConditionPathExistsGlob=|/") == 3


def test_lintian_finds_no_error(package: Path) -> None:
    """Unused overrides fail as well, so that each override stays true."""
    ran = captured(
        ["lintian", "--allow-root", "--fail-on", "error", "--display-info", str(package)], timeout=170
    )
    assert ran.returncode == 0 and "unused-override" not in ran.stdout, ran.stdout + ran.stderr


def test_another_folder_and_another_umask_build_the_same_bytes(package: Path, tmp_path: Path) -> None:
    tree = copy_tree(tmp_path / "a-longer-name-than-before")
    mask = os.umask(0o077)
    try:
        again = build(tree, TZ="Pacific/Auckland", LC_ALL="C")
    finally:
        os.umask(mask)
    assert again.read_bytes() == package.read_bytes()


def test_missing_packages_for_the_build_are_named(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for tool in ("sh", "dirname"):
        found = shutil.which(tool)
        assert found is not None
        (tmp_path / "bin" / tool).symlink_to(found)
    ran = captured(
        [str(ROOT / "debian" / "build.sh")],
        env={**clean_environ(), "PATH": str(tmp_path / "bin")},
        timeout=60,
    )
    assert ran.returncode == 1
    assert "`apt install --no-install-recommends dpkg-dev debhelper dh-python` brings" in ran.stderr
