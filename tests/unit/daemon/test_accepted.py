"""The last accepted configuration as it is kept beside the records."""

from dataclasses import fields

from supervisor.config import Config
from supervisor.daemon.accepted import _KEPT

OF_THE_FILES = {"warnings", "positions", "kept"}  # a start by the copy has none of them
BY_ITSELF = {"withheld"}  # as a list of names


def test_every_part_of_a_configuration_is_kept() -> None:
    assert {each.name for each in fields(Config)} == {*_KEPT} | OF_THE_FILES | BY_ITSELF
