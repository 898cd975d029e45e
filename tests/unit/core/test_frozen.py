"""The quick ``replace`` of the core's values."""

import os
import subprocess
import sys

IMPORTS = """
import supervisor.core.contenders
from supervisor.core import frozen
from supervisor.core.machines import tenure
from supervisor.runtime.driver import prepare_hand_over
"""


def test_no_hand_over_compiles_the_copier_of_a_class() -> None:
    script = f"{IMPORTS}assert tenure.Tenure not in frozen._COPIES\nprepare_hand_over()\n"
    script += "before = dict(frozen._COPIES)\nassert tenure.Tenure in before\nprepare_hand_over()\n"
    script += "assert all(frozen._COPIES[cls] is before[cls] for cls in frozen._COPIES)\n"
    subprocess.run([sys.executable, "-c", script], env=dict(os.environ), check=True)
