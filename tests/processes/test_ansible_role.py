"""The variables of the Ansible role, which four files describe and this test compares."""

import re
import tomllib
from typing import Any

import yaml

from docs import package_index
from tests.support.supervisor import ROOT

EXAMPLE = ROOT / "examples" / "ansible"
ROLE = EXAMPLE / "roles" / "consul_supervisor"
ROW = re.compile(r"^\| `(\w+)` \| `(.+?)` \|", re.MULTILINE)
VARIABLE = re.compile(r"\bconsul_supervisor_(?!_)[a-z_]+\b")


def role(path: str) -> Any:
    return yaml.safe_load((ROLE / path).read_text())


def test_every_variable_of_the_role_has_a_default_a_type_and_a_line_in_the_readme() -> None:
    defaults, specs = role("defaults/main.yml"), role("meta/argument_specs.yml")["argument_specs"]
    options = specs["main"]["options"]
    assert set(defaults) == set(options)
    table = (ROLE / "README.md").read_text().partition("## Variables")[2]
    documented = dict(ROW.findall(table))
    assert {name: yaml.safe_load(default) for name, default in documented.items()} == defaults


def test_a_documented_default_of_the_role_is_the_one_in_force() -> None:
    defaults = role("defaults/main.yml")
    for name, option in role("meta/argument_specs.yml")["argument_specs"]["main"]["options"].items():
        assert option["default"] == defaults[name] or "{{" in defaults[name], name


def test_no_file_of_the_role_uses_an_unknown_variable() -> None:
    known = set(role("defaults/main.yml")) | {"consul_supervisor_holders", "consul_supervisor_standby"}
    known |= {module.stem for module in (EXAMPLE / "plugins" / "modules").iterdir()}
    for path in sorted([*EXAMPLE.rglob("*.yml"), *EXAMPLE.rglob("*.j2"), *EXAMPLE.rglob("README.md")]):
        used = set(VARIABLE.findall(path.read_text()))
        assert used <= known, (path, used - known)


def test_the_collection_has_the_addresses_of_the_product() -> None:
    galaxy = yaml.safe_load((EXAMPLE / "galaxy.yml").read_text())
    repository = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]["hooks"]
    urls = package_index.urls(repository["custom"]["repository"])
    assert [galaxy["repository"], galaxy["documentation"], galaxy["issues"]] == [
        *(urls["Homepage"], urls["Documentation"], urls["Issues"])
    ]


def test_the_unit_of_the_role_is_the_shipped_one() -> None:
    for name in ("consul-supervisor.service", "watchdog.conf"):
        assert (ROLE / "files" / name).read_bytes() == (ROOT / "systemd" / name).read_bytes()
