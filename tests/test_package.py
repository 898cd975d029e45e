"""What is shipped, and the shape of the tree that readers rely on."""

import ast
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import supervisor

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "supervisor"
MODULES = sorted(PACKAGE.rglob("*.py"))
TOP_LEVEL = {
    "CHANGELOG.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "bench",
    "docs",
    "examples",
    "pyproject.toml",
    "schemas",
    "supervisor",
    "systemd",
    "tests",
}
SCHEMA = "schemas/config.schema.json"
READ_SCHEMA = (
    "import importlib.resources, sys;"
    "sys.stdout.buffer.write(importlib.resources.files('supervisor').joinpath('schemas/config.schema.json')"
    ".read_bytes())"
)


def name(module: Path) -> str:
    return str(module.relative_to(ROOT))


# --- what is built and installed --------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, ``wheel/`` built from the tree and ``sdist-wheel/`` built from the sdist."""
    folder = tmp_path_factory.mktemp("built")
    build(ROOT, folder, "--sdist")
    build(ROOT, folder / "wheel", "--wheel")
    (folder / "unpacked").mkdir()
    run("tar", "-xf", str(next(folder.glob("*.tar.gz"))), cwd=folder / "unpacked")
    build(next((folder / "unpacked").iterdir()), folder / "sdist-wheel", "--wheel")
    return folder


def build(source: Path, target: Path, kind: str) -> None:
    """Build with the backend that is installed here: no network."""
    run(sys.executable, "-m", "build", "--no-isolation", kind, "--outdir", str(target), str(source))


def run(*argv: str, cwd: Path | None = None) -> str:
    ran = subprocess.run(argv, check=False, capture_output=True, text=True, cwd=cwd, timeout=120)
    assert ran.returncode == 0, f"{argv}:\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


@pytest.fixture(scope="module", params=["wheel", "sdist-wheel"])
def installed(request: pytest.FixtureRequest, built: Path) -> Path:
    """A fresh venv with that wheel; what it depends on is lent by this interpreter's environment."""
    venv = built / f"venv-{request.param}"
    run(sys.executable, "-m", "venv", "--without-pip", str(venv))
    wheel = next((built / request.param).glob("*.whl"))
    python = str(venv / "bin" / "python")
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", str(wheel))
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (site / "lent.pth").write_text(sysconfig.get_path("purelib"))
    return venv


def test_the_installed_package_holds_its_schema(installed: Path, tmp_path: Path) -> None:
    read = run(str(installed / "bin" / "python"), "-c", READ_SCHEMA, cwd=tmp_path)
    assert read == (ROOT / SCHEMA).read_text()


def test_the_command_runs_as_installed(installed: Path, tmp_path: Path) -> None:
    """Not from this tree: the schema that it prints is the installed one."""
    where = "import supervisor; print(supervisor.__file__)"
    assert str(installed) in run(str(installed / "bin" / "python"), "-c", where, cwd=tmp_path)
    told = run(str(installed / "bin" / "consul-supervisor"), "schema", cwd=tmp_path)
    assert told.strip() == (ROOT / SCHEMA).read_text().strip()
    assert told == run(str(installed / "bin" / "python"), "-m", "supervisor", "schema", cwd=tmp_path)


def test_the_installed_version_is_the_package_s(installed: Path, tmp_path: Path) -> None:
    asked = "import importlib.metadata as m; print(m.version('consul-supervisor'))"
    assert run(str(installed / "bin" / "python"), "-c", asked, cwd=tmp_path).strip() == supervisor.__version__


def test_both_wheels_hold_the_package_and_nothing_else(built: Path) -> None:
    """The package's files, its types marker and its licence; no tests, no second copy of anything."""
    names = {kind: contents(next((built / kind).glob("*.whl"))) for kind in ("wheel", "sdist-wheel")}
    assert names["wheel"] == names["sdist-wheel"]
    info = f"consul_supervisor-{supervisor.__version__}.dist-info/"
    inside = {entry for entry in names["wheel"] if not entry.startswith(info)}
    files = {"supervisor/py.typed", f"supervisor/{SCHEMA}", "supervisor/web/page.html"}
    assert inside == {name(module) for module in MODULES} | files
    assert info + "licenses/LICENSE" in names["wheel"]


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as files:
        return set(files.namelist())


def test_the_sdist_holds_what_its_own_tests_need(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as files:
        names = [Path(*Path(entry).parts[1:]) for entry in files.getnames()]
    assert len(set(names)) == len(names)
    needed = ["Makefile", "LICENSE", "README.md", "tests/conftest.py", "tests/setup/make_venv.sh", SCHEMA]
    assert {Path(path) for path in [*needed, f"supervisor/{SCHEMA}"]} <= set(names)


# --- the tree -----------------------------------------------------------------------------------------


def test_the_top_level_is_what_it_is_said_to_be() -> None:
    assert {path.name for path in ROOT.iterdir() if path.name[0] != "."} - {"dist"} == TOP_LEVEL


def test_the_package_holds_the_one_schema() -> None:
    """A link in a checkout, so that an editable install reads what is edited; a copy in an sdist."""
    assert (PACKAGE / SCHEMA).read_bytes() == (ROOT / SCHEMA).read_bytes()


def test_the_map_names_every_module_and_no_other() -> None:
    """The docstring of the package is where a reader starts."""
    assert supervisor.__doc__ is not None
    mapped = set(re.findall(r"^ +([a-z_]+(?:\.py|/)) ", supervisor.__doc__, re.MULTILINE))
    assert mapped == set(entries(PACKAGE)) | set(entries(PACKAGE / "core"))


def entries(folder: Path) -> Iterator[str]:
    """The modules (``x.py``) and packages (``x/``) of a folder."""
    for path in folder.iterdir():
        if path.is_dir() and (path / "__init__.py").exists():
            yield f"{path.name}/"
        elif path.suffix == ".py" and not path.name.startswith("__"):
            yield path.name


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_every_module_says_what_it_is(module: Path) -> None:
    assert ast.get_docstring(ast.parse(module.read_text()))


@pytest.mark.parametrize("module", sorted((PACKAGE / "core").rglob("*.py")), ids=name)
def test_the_core_imports_only_the_standard_library_and_itself(module: Path) -> None:
    outside = {
        imported
        for imported in imports(module)
        if imported.split(".")[0] not in sys.stdlib_module_names and not within(imported, "supervisor.core")
    }
    assert outside == set()


@pytest.mark.parametrize("module", sorted((PACKAGE / "core").rglob("*.py")), ids=name)
def test_the_core_has_no_clock_no_input_and_no_output(module: Path) -> None:
    world = {"asyncio", "logging", "os", "pathlib", "random", "select", "socket", "subprocess", "sys", "time"}
    assert {imported.split(".")[0] for imported in imports(module)} & world == set()
    assert calls(module) & {"open", "print", "input"} == set()


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_only_the_command_line_prints(module: Path) -> None:
    assert module.parent == PACKAGE / "cli" or "print" not in calls(module)


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_one_thread_no_executor_and_no_sleep(module: Path) -> None:
    assert {imported for imported in imports(module) if within(imported, "threading", "concurrent")} == set()
    assert calls(module) & {"to_thread", "run_in_executor"} == set()
    assert "time.sleep" not in module.read_text()


def imports(module: Path) -> set[str]:
    """Every module that this one imports anywhere, relative imports resolved."""
    package = ".".join(module.relative_to(ROOT).parent.parts)
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            found.add(".".join([*above, *([node.module] if node.module else [])]))
    return found


def calls(module: Path) -> set[str]:
    """The last names of everything that this module calls: ``print``, ``open``, ``run_in_executor``."""
    functions = [node.func for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Call)]
    return {getattr(function, "id", getattr(function, "attr", "")) for function in functions}


def within(imported: str, *packages: str) -> bool:
    return any(imported == package or imported.startswith(package + ".") for package in packages)


def test_the_changelog_has_a_place_for_what_comes_next() -> None:
    assert "\n## [Unreleased]\n" in (ROOT / "CHANGELOG.md").read_text()
