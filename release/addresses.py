"""Puts the addresses of pyproject.toml into the other files that name them.

    python -m release.addresses            fails where a file has another address, or a placeholder is left
    python -m release.addresses --write    writes the addresses into each file

``repository`` and ``maintainer`` in pyproject.toml are the only places to edit. The tests accept placeholders
below example.org. `make dist` refuses them, because they would lead the users of a release nowhere.
"""

import re
import sys
import tomllib
from collections.abc import Mapping

from release import ROOT

PLACEHOLDER = "example.org"
SETTINGS = "pyproject.toml"
PLACES = {  # by file: what comes before an address, and which one it is
    "examples/prometheus/alerts.yml": {r"runbook_url: ": "repository"},
    "examples/ansible/galaxy.yml": {r"(?:repository|documentation|issues): ": "repository"},
    "debian/control": {r"Maintainer: ": "maintainer"},
}
VALUES = {"repository": r"\S+?(?=/blob/|/issues$|$)", "maintainer": r".+$"}


def addresses() -> dict[str, str]:
    """Return the addresses of pyproject.toml."""
    project = tomllib.loads((ROOT / SETTINGS).read_text())
    hook = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    return {name: hook[name] for name in VALUES}


def with_addresses(file: str, text: str, wanted: Mapping[str, str]) -> str:
    """Return the text of a file with the addresses in each of their places."""
    for before, name in PLACES[file].items():
        address = wanted[name].replace("\\", r"\\")
        text = re.sub(f"(?m)^(\\s*{before}){VALUES[name]}", rf"\g<1>{address}", text)
    return text


def main(arguments: list[str]) -> int:
    """Check or write the files, and return the exit code."""
    wanted, code = addresses(), 0
    for file in PLACES:
        text = (ROOT / file).read_text()
        if (wished := with_addresses(file, text, wanted)) == text:
            continue
        if arguments == ["--write"]:
            (ROOT / file).write_text(wished)
        else:
            code = 1
            print(
                f"{file}: another address than in {SETTINGS}: python -m release.addresses --write",
                file=sys.stderr,
            )
    if arguments == ["--write"]:
        return 0
    for name, value in wanted.items():
        if PLACEHOLDER in value:
            code = 1
            print(
                f"{SETTINGS}: {name} is still the placeholder {value}: write the real one there, then "
                "python -m release.addresses --write",
                file=sys.stderr,
            )
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
