"""The watchdog in the status, the metrics and the log."""

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Metric

from supervisor.adapters.journal import Journal, MachineIdentity, identity_here
from supervisor.config import Config, ConsulSettings, LogSettings
from supervisor.core import actions as a
from supervisor.core.settings import ItemSettings
from supervisor.daemon.records import Records
from supervisor.reporting.telemetry.history import History
from supervisor.reporting.telemetry.metrics.gauges import of_watchdogs
from supervisor.reporting.telemetry.status import Status
from tests.support.log_written import Written
from tests.support.watchdog import FakeKernel
from tests.unit.core.play import ROOM_S
from tests.unit.core.play import contender as election
from tests.unit.runtime.test_watchdogs import DEVICE, Node, holder

SESSION = "d94b1ea2-2c0a-4f2c-8a3b-0c2f3b1b9a10"


def status_of(node: Node) -> Status:
    def clock() -> float:
        return node.now()

    history = History(clock, clock)
    return Status(node.driver.contenders, history, node="vm1", consul="", path=None)


def item_of(node: Node) -> dict[str, Any]:
    (item,) = json.loads(status_of(node).body())["items"]
    told: dict[str, Any] = item
    return told


def family_of(node: Node) -> Metric:
    """Return the metric of the watchdogs."""
    return of_watchdogs(node.driver.contenders.by_name.values(), status_of(node).reset_in_s)


def gauge_of(node: Node) -> list[float]:
    return [sample.value for sample in family_of(node).samples]


def test_an_armed_watchdog_is_shown_with_the_time_to_the_reset() -> None:
    node = holder()
    node.kernel.now += 0.5
    assert (item_of(node)["watchdog_armed"], item_of(node)["reset_in_s"]) == (True, 9.5)
    assert gauge_of(node) == [9.5]


def test_a_watchdog_that_guards_nothing_is_shown_as_not_armed() -> None:
    node = Node(FakeKernel(), election(watchdog=DEVICE))
    assert (item_of(node)["watchdog_armed"], item_of(node)["reset_in_s"]) == (False, None)
    assert gauge_of(node) == [0.0]


def test_an_item_without_a_watchdog_has_no_value_of_it() -> None:
    node = Node(FakeKernel(), election())
    assert (item_of(node)["watchdog_armed"], gauge_of(node)) == (None, [])


def test_a_reset_that_comes_is_announced_in_the_warnings_and_the_log() -> None:
    node = holder()
    node.told.clear()
    node.passes(ROOM_S - 0.1)
    assert any("its watchdog resets this machine" in each for each in item_of(node)["warnings"])
    (told,) = node.told
    written = Written()
    written.now = node.now()
    written.on_step(told, [])
    (line,) = written.lines()
    assert (line["event"], line["level"], line["state"]) == ("watchdog", "warning", "starves")
    assert line["reset_in_s"] == pytest.approx(told.device.fires_at - node.now(), abs=0.001)


@pytest.mark.parametrize(("boot", "told"), [("another", True), ("this", False)])
async def test_a_start_after_a_reset_names_what_the_machine_held(
    tmp_path: Path, boot: str, told: bool
) -> None:
    here = identity_here()
    identity = here if boot == "this" else MachineIdentity(here.machine, here.host, "another")
    settings: ItemSettings = election(watchdog=DEVICE)
    journal = Journal(str(tmp_path), ConsulSettings(""), identity=identity)
    record = a.Record(a.Point.HOLDING, "k", SESSION, 7, 3, 1, 1.0)
    assert journal.write(a.WriteRecord("n", record, settings)) == ""
    journal.close()
    written = Written()
    config, history = Config(ConsulSettings(""), LogSettings(), (), str(tmp_path)), History(float, float)
    opened = Records(config, written.log, history, {})
    opened.start((), 10.0, a.Reason.CONFIG_CHANGED)
    await opened.close()
    assert [line["item"] for line in written.lines() if line["event"] == "machine-reset"] == ["n"] * told
