"""The shape of the tree that readers rely on; tests/system/packaging checks what is shipped."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "supervisor"
MODULES = sorted(PACKAGE.rglob("*.py"))
# The rings, and the rooms of each: what the promise rests on never imports what makes it comfortable.
PROMISE = {"core", "config", "adapters", "errors"}
ROOMS = ["commands", "rehearsal", "daemon", "reporting", "adapters", "config", "core"]
# The floors, the highest first, and what each package imports: the whole import rule. A package imports
# from lower floors only, and a new import is a decision that is made here.
FLOORS = {
    "commands.cli": "adapters.consul adapters.filesystem adapters.hooks adapters.journal"
    " adapters.runtime commands.check commands.lock_command config config.formats core daemon"
    " daemon.preflight errors rehearsal.devagent rehearsal.drill reporting.control"
    " reporting.telemetry",
    "commands.check": "adapters.consul adapters.transport config config.formats core",
    "commands.lock_command": "adapters.consul adapters.hooks adapters.runtime config config.formats"
    " core errors",
    "rehearsal.drill": "adapters.journal adapters.runtime config config.formats core daemon errors"
    " rehearsal.devagent reporting.http_server reporting.telemetry",
    "daemon": "adapters.consul adapters.filesystem adapters.hooks adapters.journal adapters.runtime"
    " config config.formats core daemon.preflight reporting.control reporting.http_server"
    " reporting.telemetry reporting.web",
    "rehearsal.devagent": "config.formats reporting.http_server",
    "adapters.journal": "adapters.filesystem adapters.hooks config config.formats core errors",
    "daemon.preflight": "adapters.filesystem adapters.hooks adapters.runtime adapters.transport"
    " config core reporting.telemetry",
    "reporting.control": "config errors reporting.http_server",
    "reporting.web": "adapters.transport config core reporting.http_server reporting.telemetry",
    "adapters.runtime": "core",
    "reporting.http_server": "",
    "reporting.telemetry": "adapters.consul adapters.filesystem adapters.hooks adapters.runtime config"
    " config.formats core",
    "adapters.consul": "adapters.filesystem adapters.transport config config.formats core errors",
    "adapters.hooks": "adapters.filesystem adapters.transport config.formats core",
    "adapters.transport": "adapters.filesystem core",
    "config": "config.formats core errors",
    "adapters.filesystem": "",
    "config.formats": "core",
    "errors": "",
    "core": "",
}
PACKAGES = sorted(path.parent for path in PACKAGE.rglob("__init__.py"))
SCHEMA = "schemas/config.schema.json"


def name(module: Path) -> str:
    return str(module.relative_to(ROOT))


def test_the_debian_package_has_the_dependencies_of_pyproject() -> None:
    control = (ROOT / "debian" / "control").read_text().partition("\nPackage: ")[2]
    debian = dict(re.findall(r"^ python3-(\S+) \(>= (\S+)\),$", control, re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = dict(requirement.split(">=") for requirement in project["dependencies"])
    assert debian == {name.replace("pyyaml", "yaml"): version for name, version in named.items()}
    page = " ".join((ROOT / "docs" / "systemd.md").read_text().split())
    assert [pair for pair in named.items() if " ".join(pair) not in page] == []
    assert f" python3 ({project['requires-python'].replace('>=', '>= ')})," in control


def test_the_package_holds_the_one_schema() -> None:
    """A checkout has a link, so that an editable install reads the edited schema; an sdist has a copy."""
    assert (PACKAGE / SCHEMA).read_bytes() == (ROOT / SCHEMA).read_bytes()


def test_every_module_is_in_a_package_of_the_import_rule() -> None:
    modules = {dotted(module) for module in MODULES if not module.name.startswith("_")}  # _version is built
    assert {module for module in modules if not floor_of(module)} == set()
    rooms = {path.name for path in PACKAGE.iterdir() if not path.name.startswith(("_", "py.typed"))}
    assert rooms == {*ROOMS, "errors.py", "schemas"}


def test_nothing_of_the_promise_imports_what_makes_it_comfortable() -> None:
    used = {floor: {each.split(".")[0] for each in FLOORS[floor].split()} for floor in FLOORS}
    assert {floor for floor in used if floor.split(".")[0] in PROMISE and used[floor] - PROMISE} == set()


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_rooms_behind_it(room: str) -> None:
    used = {
        each.split(".")[0]
        for floor in FLOORS
        if floor.split(".")[0] == room
        for each in FLOORS[floor].split()
    }
    assert used - {room, "errors"} <= set(ROOMS[ROOMS.index(room) + 1 :])


def floor_of(imported: str) -> str:
    """Return the floor of a module of ours. Blank: it is in none, as the package itself."""
    parts = imported.split(".")[1:]
    return next((name for n in (2, 1) if (name := ".".join(parts[:n])) in FLOORS), "")


@pytest.mark.parametrize("package", PACKAGES, ids=name)
def test_the_map_of_a_package_names_every_module_and_no_other(package: Path) -> None:
    """The docstring of a package is where its reader starts."""
    doc = ast.get_docstring(ast.parse((package / "__init__.py").read_text()), clean=False) or ""
    mapped = re.findall(r"^ +([a-z_]+(?:\.py|/)) ", doc, re.MULTILINE)
    assert sorted(mapped) == sorted(entries(package))


def entries(folder: Path) -> Iterator[str]:
    """Return the modules (``x.py``) and packages (``x/``) of a folder."""
    for path in folder.iterdir():
        if path.is_dir() and (path / "__init__.py").exists():
            yield f"{path.name}/"
        elif path.suffix == ".py" and not path.name.startswith("_"):
            yield path.name


@pytest.mark.parametrize("floor", FLOORS)
def test_a_package_imports_exactly_the_packages_of_its_line(floor: str) -> None:
    modules = [module for module in MODULES if floor_of(dotted(module)) == floor]
    used = {
        floor_of(imported)
        for module in modules
        for imported in imports(module)
        if within(imported, "supervisor")
    }
    assert used - {floor, ""} == set(FLOORS[floor].split())


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Imports within functions and for types count, because a reader meets the circle all the same."""
    modules = {dotted(module): module for module in MODULES}
    graph = {
        of: {to for to in imported_modules(module, modules) if to != of} for of, module in modules.items()
    }
    left = dict(graph)
    while ends := {of for of, to in left.items() if not to & left.keys()}:
        left = {of: to for of, to in left.items() if of not in ends}
    assert left == {}


def imported_modules(module: Path, modules: dict[str, Path]) -> Iterator[str]:
    """Return our modules that this one imports, as ``from a import b`` or as ``from a.b import c``."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names} & modules.keys()
            whole = len(names) == len(node.names)  # no name of the package itself
            yield from names | ({node.module} & modules.keys() if not whole else set())


def dotted(module: Path) -> str:
    """Return the name of a module for ``import``."""
    parts = module.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("module", sorted((PACKAGE / "core").rglob("*.py")), ids=name)
def test_the_core_is_pure_python_without_clock_input_and_output(module: Path) -> None:
    outside = {
        imported
        for imported in imports(module)
        if imported.split(".")[0] not in sys.stdlib_module_names and not within(imported, "supervisor.core")
    }
    assert outside == set()
    world = {"asyncio", "logging", "os", "pathlib", "random", "select", "socket", "subprocess", "sys", "time"}
    assert {imported.split(".")[0] for imported in imports(module)} & world == set()
    assert calls(module) & {"open", "print", "input"} == set()


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_no_module_uses_threads_executors_or_sleep(module: Path) -> None:
    assert {imported for imported in imports(module) if within(imported, "threading", "concurrent")} == set()
    assert calls(module) & {"to_thread", "run_in_executor"} == set()
    assert "time.sleep" not in module.read_text()


def imports(module: Path) -> set[str]:
    """Return every module that this one imports anywhere, with relative imports resolved."""
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
    """Return the last names of all calls in this module: ``print``, ``open``, ``run_in_executor``."""
    functions = [node.func for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Call)]
    return {getattr(function, "id", getattr(function, "attr", "")) for function in functions}


def within(imported: str, *packages: str) -> bool:
    return any(imported == package or imported.startswith(package + ".") for package in packages)


def test_there_is_no_definition_that_nothing_names() -> None:
    """Tests and docs count as users. A method of a class with a base may be called by the base.

    Python itself calls the __getattr__ of a module.
    """
    trees = [ast.parse(file.read_text()) for file in MODULES]
    named = {name for tree in trees for name in names_used(tree)}
    others = (file for folder in ("tests", "docs", "bench") for file in (ROOT / folder).rglob("*.py"))
    words = set(re.findall(r"\w+", "".join(file.read_text() for file in others)))
    assert [
        each for tree in trees for each in definitions(tree) if each not in named and each not in words
    ] == []


def names_used(tree: ast.AST) -> Iterator[str]:
    """Yield each name that is read, imported, or part of a text, such as the function of a command."""
    docs = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docs:
            yield from re.findall(r"\w+", node.value)


def definitions(tree: ast.Module) -> Iterator[str]:
    """Yield the functions, classes and constants of a module, and the methods of its classes."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            if isinstance(target, ast.Name) and target.id != "__all__":
                yield target.id
        if isinstance(node, ast.ClassDef) and not node.bases:
            yield from (
                each.name
                for each in node.body
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name[:2] != "__"
            )
