"""The contents of wheel and sdist; equal sources give equal bytes."""

import os
import tarfile
import time
import zipfile
from pathlib import Path

import supervisor
from docs import completion, man
from tests.support.supervisor import until
from tests.system.packaging.builds import ROOT, SCHEMA, build, copy_tree
from tests.system.packaging.conftest import Built

PACKAGE = ROOT / "supervisor"
LONG_AGO = 1_000_000_000  # a time that no checkout gives to a file
# What a wheel installs below share/ of its environment.
SHARED = {*man.pages(), *completion.PLACES.values()} | {
    f"consul-supervisor/systemd/{file.name}" for file in (ROOT / "systemd").iterdir()
}
TICK_S = 2.0  # a zip file keeps times in even seconds


def test_the_wheel_holds_the_package_and_nothing_else(built: Built) -> None:
    """The wheel has the package, its types marker, shared files and its licence: no tests, nothing twice."""
    info = f"consul_supervisor-{supervisor.__version__}.dist-info/"
    with zipfile.ZipFile(built.wheel) as files:
        names = files.namelist()
    assert len(set(names)) == len(names)
    modules = {str(module.relative_to(ROOT)) for module in PACKAGE.rglob("*.py")}
    others = {"supervisor/py.typed", f"supervisor/{SCHEMA}", "supervisor/reporting/web/page.html"}
    shared = {f"consul_supervisor-{supervisor.__version__}.data/data/share/{file}" for file in SHARED}
    assert {name for name in names if not name.startswith(info)} == modules | others | shared
    about = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    assert {name.removeprefix(info) for name in names if name.startswith(info)} == about


def test_the_sdist_holds_what_its_own_tests_need(built: Built) -> None:
    with tarfile.open(built.sdist) as files:
        names = [Path(*Path(entry).parts[1:]) for entry in files.getnames()]
    assert len(set(names)) == len(names)
    needed = ["Makefile", "LICENSE", "README.md", "tests/conftest.py", "tests/setup/make_venv.sh", SCHEMA]
    assert {Path(path) for path in [*needed, f"supervisor/{SCHEMA}"]} <= set(names)


def test_the_sdist_builds_the_very_same_wheel(built: Built, tmp_path: Path) -> None:
    again = built.wheel_of_sdist(tmp_path / "unpacked")
    assert again.name == built.wheel.name
    assert again.read_bytes() == built.wheel.read_bytes()


def test_another_day_another_folder_and_another_umask_build_the_same_bytes(
    built: Built, tmp_path: Path
) -> None:
    """Nothing of the machine or the moment is in the shipped files."""
    elsewhere = copy_tree(tmp_path / "a-longer-name-than-before")
    for path in [elsewhere, *elsewhere.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o700)  # as after `umask 077; git clone`
            os.utime(path, (LONG_AGO, LONG_AGO))
    newest = max(built.wheel.stat().st_mtime, built.sdist.stat().st_mtime)
    until(lambda: time.time() >= newest + TICK_S, "the clock has moved on")
    mask = os.umask(0o077)
    try:
        other = {"TZ": "Pacific/Auckland", "LC_ALL": "C", "PYTHONHASHSEED": "7", "HOME": str(tmp_path)}
        wheel = build(elsewhere, tmp_path / "wheel", "wheel", other)
        sdist = build(elsewhere, tmp_path / "sdist", "sdist", other)
    finally:
        os.umask(mask)
    assert (wheel.name, sdist.name) == (built.wheel.name, built.sdist.name)
    assert wheel.read_bytes() == built.wheel.read_bytes()
    assert sdist.read_bytes() == built.sdist.read_bytes()
