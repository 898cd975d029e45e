"""A kernel upgrade of three machines moves the lock once, and ``members`` of a cluster with a fault.

The steps are those of docs/operations.md.
"""

import os
import re
from collections.abc import Iterator

import pytest
import yaml

from tests.support.supervisor import until
from tests.support.tenures import most_between
from tests.system.machine.node import CONFIG, UNIT
from tests.system.machine.trio import FAILS, ROLES_S, Trio


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    """Three machines whose daemons take part in one election; each test leaves them so."""
    assert os.geteuid() == 0, "cannot boot a machine: this needs root"
    with Trio(tmp_path_factory.mktemp("trio")) as made:
        yield made


@pytest.fixture(autouse=True)
def never_two(trio: Trio) -> Iterator[None]:
    """Whatever a test does, no two nodes act at once."""
    yield
    trio.wait_consul()
    trio.wait_candidates()
    stamps = trio.stamps()
    assert most_between([(stamp.event, stamp.node) for stamp in stamps], "acquire", "lose") == 1, stamps


def others(trio: Trio, *left_out: str) -> list[str]:
    return sorted(set(trio.machines) - {*left_out})


def test_a_rolling_upgrade_of_three_machines_moves_the_lock_once(trio: Trio) -> None:
    holder = trio.wait_candidates()
    heir, third = others(trio, holder)
    before = len(trio.stamps())

    def reboot(node: str) -> None:
        trio.machines[node].reboot()
        trio.wait_consul()
        trio.wait_candidates()

    reboot(heir)
    reboot(third)
    said = trio.did(holder, f"step-down app --to {heir} --reason 'kernel upgrade'")
    assert re.fullmatch(rf"app: {heir} holds it, [\d.]+ s after this node released it\n", said)
    reboot(holder)
    new = trio.stamps()[before:]
    assert [stamp[1:] for stamp in new] == [("lose", "step-down", holder), ("acquire", "acquired", heir)]


def test_members_names_a_candidate_that_is_cut_off_until_its_session_ends(trio: Trio) -> None:
    holder = trio.wait_candidates()
    cut = others(trio, holder, trio.leading_server())[0]
    (third,) = others(trio, holder, cut)
    known = trio.stamps()
    with trio.cut_off(cut):
        trio.wait_members(third, {holder: "holder", third: "candidate", cut: "candidate"})
        until(lambda: trio.run(cut, "members app").returncode == 69, "it shows nothing itself", 30.0)
        assert trio.role(cut) == "waiting"
        trio.wait_members(third, {holder: "holder", third: "candidate"})
    trio.wait_candidates()
    assert trio.stamps() == known


def test_members_names_a_holder_that_is_cut_off_and_then_nobody_and_then_its_successor(trio: Trio) -> None:
    """It does not lead Consul itself, because Consul answers nobody until it has another leader."""
    cut = trio.wait_candidates()
    if cut == trio.leading_server():
        trio.did(cut, f"step-down app --for 1s --to {others(trio, cut)[0]}")
        cut = trio.wait_candidates()
    one, two = others(trio, cut)
    with trio.cut_off(cut):
        trio.wait_members(one, {cut: "holder", one: "candidate", two: "candidate"})
        trio.wait_members(one, {one: "candidate", two: "candidate"})
        until(lambda: sorted(trio.members(one).values()) == ["candidate", "holder"], "one takes over", 60.0)
    assert trio.wait_candidates() != cut
    lost, won = trio.stamps()[-2:]
    assert lost[1:] == ("lose", "lease-expired", cut) and won.event == "acquire"


def test_members_names_a_stuck_node_as_holder_and_its_status_says_that_it_is_stuck(trio: Trio) -> None:
    stuck = trio.wait_candidates()
    one, two = others(trio, stuck)
    trio.machines[stuck].did(f"touch {FAILS}")
    assert trio.run(stuck, "step-down app --for 1s").returncode == 1
    until(lambda: trio.role(stuck) == "stuck", "on_lose has failed")
    assert trio.members(one) == {stuck: "holder", one: "candidate", two: "candidate"}
    trio.end_by_hand(stuck)
    trio.did(stuck, "recover app")


def test_a_node_that_never_led_answers_what_is_asked_at_three_in_the_morning(trio: Trio) -> None:
    """The leader's machine is gone, and a colleague has paused the node on which the questions are asked."""
    for machine in trio.machines.values():
        machine.write(CONFIG, yaml.safe_dump({"fleet": {}, **yaml.safe_load(machine.read(CONFIG))}))
        machine.did(f"systemctl reload {UNIT}")
    holder = trio.wait_candidates()
    heir, here = others(trio, holder)
    trio.did(here, "pause app --reason 'CHG-1234 disk swap, Bob'")
    until(lambda: trio.history(here)[:1] == [(holder, None)], "the tenure is told", ROLES_S)
    trio.lose_machine(holder)
    until(lambda: trio.history(here)[:1] == [(heir, None)], "the next tenure is told", ROLES_S)
    until(lambda: trio.nodes(here)[holder]["status"] == "critical", "the lost node is shown as such", ROLES_S)
    assert trio.history(here)[:2] == [(heir, None), (holder, "ended without a word")]
    nodes = trio.nodes(here)
    assert {name: node["role"] for name, node in nodes.items()} == {
        holder: "holding",
        heir: "holding",
        here: "paused",
    }
    assert "by root (CHG-1234 disk swap, Bob) since" in nodes[here]["detail"]
    assert trio.nodes(heir) == nodes, "every node gives the same answer"
    trio.machines[holder].boot()
    trio.did(here, "resume app")
