"""The versions that the tests of this environment run with, in the form of pip's constraints."""

from collections.abc import Collection
from importlib.metadata import distributions


def constraints(without: Collection[str] = ()) -> str:
    """Return a line for each installed package, except the product and the packages ``without``."""
    left_out = {"consul-supervisor", *without}
    found = {each.name: each.version for each in distributions()}
    return "".join(f"{name}=={found[name]}\n" for name in sorted(found) if name not in left_out)
