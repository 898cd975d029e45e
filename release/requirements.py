"""Writes ``requirements.txt``: one version of each package, with the hashes of its files, for pip.

    python -m release.requirements dist    takes wheel and sdist in dist, and writes the file beside them

The versions are those that the tests run with. pip then refuses every file that is not one of these:

    pip install --require-hashes --find-links dist -r dist/requirements.txt

The file names no package index, so each machine uses its own.
"""

import hashlib
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import supervisor
from release import ROOT, SDIST, WHEEL
from release.tested import constraints

NAME = "requirements.txt"
OLDEST = (3, 11)
HEAD = f"""\
# consul-supervisor {supervisor.__version__} and what it needs, as tested. In the folder of this file:
# pip install --require-hashes --find-links . -r {NAME}
"""
OPTIONS = [
    *("--quiet", "--generate-hashes", "--allow-unsafe", "--strip-extras", "--no-header", "--no-annotate"),
    *("--no-build-isolation", "--no-emit-index-url", "--no-emit-find-links", "--no-emit-trusted-host"),
]


def main(folder: Path) -> None:
    """Write the requirements beside the wheel and the sdist in ``folder``."""
    if sys.version_info[:2] != OLDEST:
        wanted = "{}.{}".format(*OLDEST)
        sys.exit(
            f"cannot write {NAME}: this is not Python {wanted}, and a later one leaves out packages that "
            f"{wanted} needs; run `make clean`, then `PYTHON=python{wanted} make dist`"
        )
    (folder / NAME).write_text(f"{HEAD}{own(folder)}{compiled()}")


def own(folder: Path) -> str:
    """Return the product's own requirement, by the files in ``folder`` and no other of this name."""
    hashes = [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in (WHEEL, SDIST)]
    lines = [
        f"consul-supervisor=={supervisor.__version__}",
        *(f"    --hash=sha256:{each}" for each in hashes),
    ]
    return " \\\n".join(lines) + "\n"


def compiled() -> str:
    """Return the requirements of all packages that the product needs, by pip-compile."""
    with TemporaryDirectory() as temporary:
        pins, target = Path(temporary, "constraints.txt"), Path(temporary, NAME)
        pins.write_text(constraints())
        argv = ["piptools", "compile", *OPTIONS, "--constraint", str(pins), "--output-file", str(target)]
        subprocess.run([sys.executable, "-m", *argv, "pyproject.toml"], check=True, cwd=ROOT)
        return target.read_text()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
