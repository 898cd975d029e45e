"""The quick ``replace`` of the core's values."""

import os
import subprocess
import sys

IMPORTS = "import supervisor.core.contenders\nfrom supervisor.core import frozen, tenure\n"


def test_no_hand_over_compiles_the_copier_of_a_class() -> None:
    script = f"{IMPORTS}assert tenure.Tenure not in frozen._COPIES\nfrozen.make_copiers()\n"
    script += "before = dict(frozen._COPIES)\nassert tenure.Tenure in before\nfrozen.make_copiers()\n"
    script += "assert all(frozen._COPIES[cls] is before[cls] for cls in frozen._COPIES)\n"
    subprocess.run([sys.executable, "-c", script], env=dict(os.environ), check=True)
