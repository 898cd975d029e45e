"""The shape of the tree that readers rely on; what is shipped of it is tested in packaging/."""

import ast
import re
import sys
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


def name(module: Path) -> str:
    return str(module.relative_to(ROOT))


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
