"""Writes ``consul-supervisor.pyz``, the product and all that it imports in one file.

    python -m release.single_file dist    takes the wheel in dist, and writes the file beside it

The file is a zip file that Python runs as it stands. Nothing is ever unpacked, so the file needs no folder
that it may write to. It has no compiled part either, so one file serves every Python from 3.11 on and every
CPU. For this the validator is the newest that is pure Python, and YAML is read without libyaml.

Equal sources and versions give equal bytes.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from release import WHEEL
from release.tested import constraints

NAME = "consul-supervisor.pyz"
# Every later jsonschema needs rpds-py, which is compiled for one version of Python and one CPU.
PURE = {"jsonschema": "4.17.3", "pyrsistent": "0.20.0"}
KEPT = {"METADATA", "LICENSE", "LICENCE", "NOTICE", "COPYING", "AUTHORS"}  # of what pip notes of a package
MODE = 0o755
# Importing requests imports certifi, whose own module would unpack its authorities into the temporary folder.
CERTIFI = '''\
"""Stands in for certifi: consul-supervisor verifies by the authorities of the system."""


def where() -> str:
    """Return no file of authorities."""
    return ""
'''
MAIN = '''\
"""Starts the command, on a Python that can run it."""

import sys

if sys.version_info < (3, 11):
    sys.exit("consul-supervisor needs Python 3.11 or later, and this is %d.%d" % sys.version_info[:2])

if sys.argv[1:2] == ["run"]:
    # A reload needs these, and by then an upgrade may have replaced the file that they come from.
    import jsonschema
    import supervisor.config.loader

    jsonschema.validate(None, {})  # reads the schemas that come with it

from supervisor.__main__ import main

sys.exit(main())
'''


def main(folder: Path) -> None:
    """Write the single file beside the wheel in ``folder``."""
    with TemporaryDirectory() as temporary:
        app = Path(temporary, "app")
        install(folder / WHEEL, app, Path(temporary, "constraints.txt"))
        strip(app)
        (app / "certifi.py").write_text(CERTIFI)
        (app / "__main__.py").write_text(MAIN)
        pack(app, folder / NAME)


def install(wheel: Path, app: Path, pins: Path) -> None:
    """Install the wheel and its dependencies into the folder ``app``. ``pins``: a file for the versions."""
    pins.write_text(constraints(without=PURE) + "".join(f"{name}=={PURE[name]}\n" for name in PURE))
    options = ["--quiet", "--disable-pip-version-check", "--no-compile", "--no-warn-conflicts"]
    argv = ["pip", "install", *options, "--target", str(app), "--constraint", str(pins), str(wheel)]
    subprocess.run([sys.executable, "-m", *argv], check=True)


def strip(app: Path) -> None:
    """Remove what Python does not import, certifi, and the compiled parts, which are only quicker.

    Of what pip notes of a package the licence stays.
    """
    for folder in [*app.glob("certifi*"), *app.glob("bin"), *app.glob("share")]:
        shutil.rmtree(folder)
    for path in [path for path in app.rglob("*") if path.is_file()]:
        noted = any(parent.suffix == ".dist-info" for parent in path.parents)
        kept = path.stem in KEPT or "licenses" in path.parts
        if path.suffix == ".so" or (noted and not kept):
            path.unlink()


def pack(app: Path, target: Path) -> None:
    """Write the folder as a zip file that can be executed, without times, owners and modes."""
    with target.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with ZipFile(file, "w") as archive:
            for path in sorted(path for path in app.rglob("*") if path.is_file()):
                archive.writestr(ZipInfo(str(path.relative_to(app))), path.read_bytes(), ZIP_DEFLATED)
    target.chmod(MODE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
