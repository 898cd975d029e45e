"""One item for each value of ``for_each``, with ``${EACH}`` filled in wherever the item has a text."""

from pathlib import Path

import pytest

from supervisor.config import Config, ConfigError, load
from supervisor.config.files import FILES_BYTES_MAX
from supervisor.config.loader import items_at
from supervisor.config.yaml_reader import NODES_MAX
from supervisor.core.contender.creation import new_contender
from supervisor.core.contender.state import Contender
from supervisor.core.reload import ReloadEffect, plan_reload
from supervisor.core.settings import Command, ElectionSettings, SemaphoreSettings, Webhook
from tests.support.examples import CONFIGS

CUSTOMERS = (CONFIGS / "customers.yaml").read_text()
FORTY = [f"customer-{number:02}" for number in range(40)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "c.yaml"


def config(file: Path, text: str) -> Config:
    file.write_text(text)
    return load(file, {"HOME": "/root", "EACH": "of the environment"}, "node1")


def refusals(file: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        config(file, text)
    return [str(problem).removeprefix(f"{file}:") for problem in refused.value.problems]


def test_forty_customers_stand_in_fifteen_lines(file: Path) -> None:
    text = CUSTOMERS.replace("[acme, globex]", f"[{', '.join(FORTY)}]")
    assert len([line for line in text.splitlines() if line.strip() and not line.startswith("#")]) <= 15
    loaded = config(file, text)
    assert [item.name for item in loaded.items] == [f"db-{each}" for each in FORTY]
    assert {item.key for item in loaded.items} == {f"service/customers/{each}/leader" for each in FORTY}
    assert loaded.warnings == ()
    last = loaded.items[-1]
    assert last.value == b'{"Node":"node1","Customer":"customer-39"}'
    assert (last.session.name, last.session.lock_delay_s) == ("consul-supervisor:db-customer-39", 45.0)
    assert [hook.name for hook in last.hooks] == ["start", "stop"]


def test_each_text_of_an_election_holds_its_value(file: Path) -> None:
    text = """
elections:
  db-${EACH}:
    for_each: [a, b-2]
    key: ${HOSTNAME}/${EACH}/${EACH}
    value: [{Of: "${EACH} of ${HOSTNAME}", Price: $$5}]
    session: {name: "db ${EACH}", node_checks: ["disk-${EACH}"], service_checks: [{id: "${EACH}"}]}
    on_acquire:
      - {name: "start-${EACH}", shell: "start ${EACH} $EACH", user: "db-${EACH}", group: "${EACH}"}
      - {exec: ["/opt/${EACH}/start", "--name=${EACH}"], env: {DB: "${EACH}"}, cwd: "/srv/${EACH}"}
    on_change: [{webhook: "https://${EACH}.example.net/", headers: {X-Db: "${EACH}"}, body: "${EACH}"}]
    run: {exec: [run, "${EACH}"]}
    candidate_check: {shell: "check ${EACH}"}
"""
    (_, it) = config(file, text).items
    assert isinstance(it, ElectionSettings)
    assert (it.name, it.key) == ("db-b-2", "node1/b-2/b-2")
    assert it.value == b'[{"Of":"b-2 of node1","Price":"$5"}]'
    assert (it.session.name, it.session.node_checks) == ("db b-2", ("disk-b-2",))
    assert it.session.service_checks == ("b-2",)
    start, second = it.on_acquire
    assert start.name == "start-b-2"
    assert start.call == Command(("/bin/sh", "-c", "start b-2 $EACH"), user="db-b-2", group="b-2")
    assert second.call == Command(
        ("/opt/b-2/start", "--name=b-2"), env=(("DB", "b-2"),), cwd="/srv/b-2", kill_after_s=1.0
    )
    (change,) = it.on_change
    assert isinstance(change.call, Webhook) and it.run is not None and it.check_hook is not None
    assert (change.call.url, change.call.headers) == ("https://b-2.example.net/", (("X-Db", "b-2"),))
    assert (change.call.body, it.run.command.argv) == ("b-2", ("run", "b-2"))
    assert it.check_hook.call == Command(("/bin/sh", "-c", "check b-2"))


def test_semaphores_and_observers_may_be_repeated(file: Path) -> None:
    text = """
elections: {"seen-${EACH}": {for_each: [a, b], contend: false}}
semaphores: {"${EACH}": {for_each: [x, y], limit: 2, prefix: "jobs/${EACH}"}}
"""
    *seen, x, y = config(file, text).items
    assert [(item.name, item.key) for item in seen] == [
        ("seen-a", "service/seen-a/leader"), ("seen-b", "service/seen-b/leader"),
    ]  # fmt: skip
    assert isinstance(x, SemaphoreSettings) and (x.name, x.prefix, y.key) == ("x", "jobs/x", "jobs/y/.lock")


def test_the_items_are_as_if_they_were_written_out(file: Path) -> None:
    made = config(file, 'elections: {z: {}, "a-${EACH}": {for_each: [c, b], value: "${EACH}"}, y: {}}')
    assert made == config(file, "elections: {z: {}, a-c: {value: c}, a-b: {value: b}, y: {}}")


def test_a_doubled_dollar_is_no_reference(file: Path) -> None:
    text = '{"a-${EACH}": {for_each: [b], value: "$${EACH}", on_lose: [{shell: "echo $${EACH} $$ ${EACH}"}]}}'
    (it,) = config(file, f"elections: {text}").items
    assert it.value == b"${EACH}"
    assert it.on_lose[0].call == Command(("/bin/sh", "-c", "echo $${EACH} $$ b"))


def test_a_query_finds_an_item_by_its_name(file: Path) -> None:
    file.write_text('elections: {"a-${EACH}": {for_each: [b, c], key: "${EACH}/${NOT_SET}", value: x}}')
    with pytest.raises(ConfigError):
        load(file, {}, "node1", asked="a-c")
    assert load(file, {"NOT_SET": "d"}, "node1", asked="a-c").items[1].key == "c/d"


def test_the_names_of_a_file_are_those_of_its_items_whatever_its_faults(file: Path) -> None:
    file.write_text(
        'elections: {"a-${EACH}": {for_each: [b, c], keey: x}, "d-${EACH}": {for_each: 1}}\n'
        'semaphores: {"${EACH}": {for_each: [e]}}\n'
    )
    elections = [("election", "a-b"), ("election", "a-c"), ("election", "d-${EACH}")]
    assert items_at(file) == [*elections, ("semaphore", "e")]


# --- bounds ------------------------------------------------------------------------------------------


def test_the_number_of_items_is_bounded_as_if_they_were_written_out(file: Path) -> None:
    values = ", ".join(f"v{number}" for number in range(1500))
    item = f"{{for_each: [{values}], contend: false}}"
    (problem,) = refusals(file, f'elections: {{"a-${{EACH}}": {item}, "b-${{EACH}}": {item}}}')
    assert problem == "1:1: elections: cannot have 3000 entries: at most 2000"
    (problem,) = refusals(file, f'elections: {{"a-${{EACH}}": {{for_each: [{values}, {values}]}}}}')
    assert problem == '1:27: elections["a-${EACH}"].for_each: cannot have 3000 entries: at most 2000'


@pytest.mark.parametrize(
    "value",
    [
        f"[{'1,' * (NODES_MAX // 1000)}]",
        f'"{"x" * (FILES_BYTES_MAX // 1000)}"',
        f'"{"${EACH}" * (FILES_BYTES_MAX // 1000 // 63)}"',
        f"{{{', '.join(f'{number:0100}: 1' for number in range(FILES_BYTES_MAX // 1000 // 99))}}}",
    ],
    ids=["values", "text", "references", "keys"],
)
def test_what_all_items_hold_together_is_bounded(value: str, file: Path) -> None:
    values = [f"v{number}" for number in range(1000)]
    text = 'elections: {"a-${EACH}": {value: VALUE, for_each: [EVERY]}, "b-${EACH}": {for_each: [c]}}'
    text = text.replace("VALUE", value).replace("EVERY", ", ".join(values))
    (problem,) = (each for each in refusals(file, text) if "at most" not in each)
    assert problem.endswith(
        f"cannot be repeated: the items of for_each would have more than {NODES_MAX} values or 2 MiB in all"
    )
    assert len(config(file, text.replace(", ".join(values), ", ".join(values[:900]))).items) == 901


@pytest.mark.parametrize(
    "value",
    [f"[{'1,' * (NODES_MAX // 1000)}]", f'"{"x" * (FILES_BYTES_MAX // 1000)}"'],
    ids=["values", "text"],
)
def test_the_items_of_every_for_each_count_together(value: str, file: Path) -> None:
    values = ", ".join(f"v{number}" for number in range(600))
    item = f"{{value: {value}, for_each: [{values}]}}"
    (problem,) = refusals(file, f'elections: {{"a-${{EACH}}": {item}, "b-${{EACH}}": {item}}}')
    assert 'elections["b-${EACH}"].for_each: cannot be repeated: ' in problem


def test_a_mistake_in_each_of_many_items_is_one_problem(file: Path) -> None:
    values = ", ".join(f"v{number}" for number in range(2000))
    hook = '{shell: "true", timeout: 5}'
    text = f'elections: {{"a-${{EACH}}": {{for_each: [{values}], on_lose: [{hook}]}}}}'
    (problem,) = refusals(file, text)
    assert problem.endswith("such as 500ms, 15s or 1h30m (in a-v0 and 1999 more)")


# --- folders -------------------------------------------------------------------------------------------


def test_a_name_of_another_file_is_refused_with_both_places(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("elections:\n  db-b: {}\n")
    (tmp_path / "b.yaml").write_text('elections:\n  "db-${EACH}": {for_each: [a, b]}\n')
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, {}, "node1")
    assert str(refused.value) == (
        f'{tmp_path}/b.yaml:2:32: elections["db-${{EACH}}"].for_each[1]: cannot share the name db-b with '
        f"elections.db-b ({tmp_path}/a.yaml:2:3): give each its own"
    )


# --- reload ----------------------------------------------------------------------------------------------


def effects(file: Path, before: str, after: str) -> dict[str, ReloadEffect]:
    contenders: dict[str, Contender] = {
        item.name: new_contender(item, spread=0.0, instance="i") for item in config(file, before).items
    }
    return plan_reload(contenders, {}, {item.name: item for item in config(file, after).items})


def test_a_reload_adds_and_removes_the_items_of_values_that_come_and_go(file: Path) -> None:
    before = 'elections: {"a-${EACH}": {for_each: [b, c, d]}}'
    assert effects(file, before, before.replace("[b, c, d]", "[e, d, b]")) == {
        "a-b": ReloadEffect.UNCHANGED,
        "a-c": ReloadEffect.ENDS,
        "a-d": ReloadEffect.UNCHANGED,
        "a-e": ReloadEffect.BEGINS,
    }
    written_out = "elections: {a-d: {}, a-b: {}, a-c: {}}"
    assert set(effects(file, before, written_out).values()) == {ReloadEffect.UNCHANGED}
