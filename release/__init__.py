"""The files of a release, which `make dist` writes to dist/ beside the wheel and the sdist.

single_file.py    consul-supervisor.pyz: the product and all that it imports, for every Python from 3.11 on
requirements.py   requirements.txt: the product and the tested versions of its dependencies, with hashes
addresses.py      the addresses in all files as in pyproject.toml, and none of them a placeholder
tested.py         the versions that the tests of this environment run with
"""

from pathlib import Path

import supervisor

ROOT = Path(__file__).resolve().parents[1]
WHEEL = f"consul_supervisor-{supervisor.__version__}-py3-none-any.whl"
SDIST = f"consul_supervisor-{supervisor.__version__}.tar.gz"
