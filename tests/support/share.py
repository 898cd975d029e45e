"""``SHARE=1/3`` in the environment: only a third of the tests, the one that the first number names.

A change that touches most of the long targets passes a part of each, in turn, because all of them take an
hour; ``tests/stages.py`` names the part.
"""

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def share_of(many: Iterable[T]) -> list[T]:
    """Return every third one, or whatever SHARE says, in their order; without that variable all of them."""
    turn, parts = (int(number) for number in os.environ.get("SHARE", "0/1").split("/"))
    return [one for place, one in enumerate(many) if place % parts == turn % parts]
