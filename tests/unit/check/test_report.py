"""The report of ``check``: the figures that an operator plans with, against sums that were made by hand."""

from pathlib import Path

import pytest

from supervisor.commands.check.findings import Finding, Level
from supervisor.commands.check.report import as_text, faults_text, refused_verdict, verdict
from supervisor.config import Config, Problem, load
from supervisor.config.problems import PROBLEMS_MAX
from tests.support.configured import loaded as configured


def printed(tmp_path: Path, text: str) -> str:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    return as_text(load(file, {}, "node1")).replace(str(file), "c.yaml")


def test_the_figures_of_an_election(tmp_path: Path) -> None:
    text = """
elections:
  namenode:
    key: service/hdfs/leader
    session: {ttl: 10s, lock_delay: 45s}
    on_acquire: [{shell: a}]
    on_lose: [{shell: a, timeout: 8s, name: stop}, {webhook: "http://h/", timeout: 2s}]
    on_lose_failure: [{shell: a, timeout: 3s}]
    run: {exec: [a]}
""".lstrip()
    expected = """
namenode
  key          service/hdfs/leader
  role         contends
  ttl          10s
  lock_delay   45s
  lose_time    21s = on_acquire kill_after 1s + run stop_timeout 5s + stop 9s + on_lose[1] 2s + on_lose_failure[0] 4s
  room         21.75s = lock_delay 45s - margin 2.25s - lose_time 21s
  silence      15.08s are tolerated while Consul changes its leader: room - 2 x interval 3.33s
  cut off      12.67s are tolerated while Consul keeps its leader: 2 x ttl - ttl/3 - exchange 3s - 1s
  failover     65s at most after a crash while Consul keeps its leader: 2 x ttl + lock_delay;
               else Consul's own election and 20s more
""".lstrip()  # noqa: E501
    assert printed(tmp_path, text) == expected


def test_the_failover_of_a_node_that_is_not_preferred_counts_its_acquire_delay(tmp_path: Path) -> None:
    text = printed(tmp_path, "elections: {app: {acquire_delay: 2s, session: {lock_delay: 45s}}}")
    assert (
        "  failover     67s at most after a crash while Consul keeps its leader: "
        "2 x ttl + lock_delay + acquire_delay 2s;\n"
    ) in text
    assert "warning" not in text


def test_the_failover_counts_what_this_node_may_hold_of_the_group(tmp_path: Path) -> None:
    group = "{busy_delay: 500ms, group: g}"
    items = f"{{a: {group}, b: {group}, c: {{group: g}}, d: {{}}, e: {{group: g, contend: true}}}}"
    text = printed(tmp_path, f"elections: {items}\nsemaphores: {{s: {{limit: 2, group: g}}}}")
    assert "  failover     52s at most" in text
    assert "2 x ttl + lock_delay + busy_delay 0.5s x 4 other items;\n" in text
    assert "warning" not in text


def test_a_wait_for_other_locks_beyond_the_lock_delay_is_warned_of_once(tmp_path: Path) -> None:
    items = ", ".join(f"e{number}: {{busy_delay: 10s}}" for number in range(5))
    text = printed(tmp_path, f"elections: {{{items}}}")
    assert text.count("warning") == 1
    assert "elections.e0.busy_delay: after a crash a node that holds most" in text
    assert "each try in the first 30s: set 7.5s or less\n" in text


def test_an_acquire_delay_beyond_the_lock_delay_in_consul_is_warned_of(tmp_path: Path) -> None:
    item = "acquire_delay: 47s, session: {lock_delay: 45s}"
    warned = (
        "because its first try comes after the lock_delay: set less than 45s, or 45s plus the time to leave"
    )
    text = printed(tmp_path, f"elections: {{app: {{{item}}}}}")
    assert f"this node leaves the key to others for 2s only, {warned}\n" in text
    exclusive = printed(tmp_path, f"elections: {{app: {{{item}, fence: {{shell: off, exclusive: true}}}}}}")
    assert warned not in exclusive, "Consul keeps the key back for nobody"


def test_a_cut_off_node_tolerates_no_more_than_the_room_allows(tmp_path: Path) -> None:
    text = printed(tmp_path, "elections: {app: {session: {ttl: 30s, lock_delay: 30s}}}")
    assert "  cut off      9.5s are tolerated while Consul keeps its leader\n" in text


def test_without_a_ttl_the_report_says_how_to_free_the_key(tmp_path: Path) -> None:
    text = printed(tmp_path, "elections: {app: {session: {ttl: none, lock_delay: 60s}}}")
    assert "  ttl          none\n" in text
    assert "session by `consul-supervisor members app`, make sure" in text
    assert "`consul-supervisor sessions destroy ID`; the key is free 60s (lock_delay) later" in text


def test_with_an_accepted_overlap_the_report_says_how_small_the_room_would_be(tmp_path: Path) -> None:
    text = printed(tmp_path, "elections: {app: {accept_overlap: true, session: {lock_delay: 0s}}}")
    assert (
        "  room         10s = ttl, because accept_overlap is true: "
        "lock_delay 0s - margin 0.5s - lose_time 0s is only -0.5s\n"
    ) in text


def test_warnings_come_last_with_their_place(tmp_path: Path) -> None:
    text = printed(tmp_path, "elections: {app: {session: {ttl: 5s}}, other: {}}")
    assert text.count("\n\n") == 2
    assert text.endswith(
        "\n\nwarning: c.yaml:1:34: elections.app.session.ttl: "
        "below 10s Consul refuses it unless its session_ttl_min allows it\n"
    )


def test_the_figures_of_a_semaphore_are_those_of_its_prune_delay(tmp_path: Path) -> None:
    text = "semaphores: {rebuild: {limit: 3, prune_delay: 2m, on_lose: [{shell: stop}]}}"
    assert (
        printed(tmp_path, text)
        == """
rebuild
  prefix       service/rebuild
  slots        3 at most, fewer where .lock in Consul says so
  role         contends
  ttl          10s
  prune_delay  2m
  lose_time    6s = on_lose[0] 6s
  room         108s = prune_delay 2m - margin 6s - lose_time 6s
  silence      101.33s are tolerated while Consul changes its leader: room - 2 x interval 3.33s
  cut off      12.67s are tolerated while Consul keeps its leader: 2 x ttl - ttl/3 - exchange 3s - 1s
  failover     2m20s at most after a crash while Consul keeps its leader: 2 x ttl + prune_delay;
               else Consul's own election and 20s more
""".lstrip()
    )


def test_without_a_prune_delay_the_lock_delay_guards_a_slot(tmp_path: Path) -> None:
    text = printed(tmp_path, "semaphores: {rebuild: {limit: 3, session: {ttl: none, lock_delay: 47s}}}")
    assert "  prune_delay  47s\n" in text
    assert "`consul-supervisor sessions destroy ID`; the slot is free 47s (prune_delay) later" in text


def test_a_semaphore_whose_contender_keys_would_stay_is_a_warning(tmp_path: Path) -> None:
    given = "semaphores: {rebuild: {limit: 3, session: {behavior: release}}}"
    usual = "defaults: {session: {behavior: release}}\nsemaphores: {rebuild: {limit: 3}}"
    for text in (given, usual):
        assert "semaphores.rebuild.session.behavior: the key of a contender" in printed(tmp_path, text)
    assert "behavior" not in printed(tmp_path, "semaphores: {rebuild: {limit: 3}}")


def test_a_warning_about_a_semaphore_has_a_remedy_for_semaphores(tmp_path: Path) -> None:
    text = "semaphores: {rebuild: {limit: 3, prune_delay: 60s, on_lose: [{shell: stop, timeout: 50s}]}}"
    assert (
        "c.yaml:1:47: semaphores.rebuild.prune_delay: tolerates 2s without an answer from Consul, "
        "whose change of leader takes 14s: set 76s to tolerate that\n"
    ) in printed(tmp_path, text)


LATE = "if this supervisor hangs, on_lose may end"


def test_a_watchdog_that_comes_too_late_for_the_lock_delay_is_a_warning(tmp_path: Path) -> None:
    """WatchdogSec, RestartSec and a second to start are 12 s, and with a lose_time of 19 s more than 30 s."""
    text = "elections: {app: {session: {lock_delay: 30s}, on_lose: [{shell: stop, timeout: 18s}]}}"
    assert (
        "elections.app.session.lock_delay: if this supervisor hangs, on_lose may end 1s after another node "
        "may hold the key, because WatchdogSec 10s + RestartSec 1s + start 1s + lose_time 19s exceeds "
        "lock_delay 30s: set 31s, shorten the timeouts, or lower WatchdogSec in a drop-in\n"
    ) in printed(tmp_path, text)


@pytest.mark.parametrize(
    "item",
    [
        "on_lose: [{shell: stop, timeout: 17s}]",
        "on_lose: [{shell: stop, timeout: 18s}], accept_overlap: true",
        "contend: false",
    ],
)
def test_a_watchdog_in_time_and_an_item_that_never_holds_are_no_warning(tmp_path: Path, item: str) -> None:
    assert LATE not in printed(tmp_path, f"elections: {{app: {{{item}}}}}")


@pytest.mark.parametrize(
    ("watchdog_usec", "warned"),
    [("4000000", False), ("10000000", True), ("", True), ("0", True), ("soon", True), ("²", True)],
)
def test_the_sum_about_a_supervisor_that_hangs_has_the_watchdog_of_its_unit(
    tmp_path: Path, watchdog_usec: str, warned: bool
) -> None:
    """systemd tells it to the daemon: 4 s, 2 s for the start and a lose_time of 1.5 s fit into 8 s."""
    text = as_text(
        configured(
            tmp_path,
            "elections: {app: {session: {lock_delay: 8s}, on_lose: [{shell: a, timeout: 500ms}]}}",
            {"WATCHDOG_USEC": watchdog_usec},
        )
    )
    assert (LATE in text) is warned


def test_a_file_that_knows_how_quick_its_servers_are_is_judged_by_that(tmp_path: Path) -> None:
    item = "elections: {app: {session: {lock_delay: 7s, confirm_every: 1s}}}"
    slow = printed(tmp_path, item)
    assert "tolerates 4.5s without an answer from Consul, whose change of leader takes 14s: set 18s" in slow
    quick = printed(tmp_path, f"consul: {{leader_change: 3s}}\n{item}")
    assert (
        "  silence      4.5s are tolerated while Consul changes its leader: room - 2 x interval 1s\n" in quick
    )
    assert "without an answer" not in quick
    slower = printed(tmp_path, f"consul: {{leader_change: 4100ms}}\n{item}")
    assert "whose change of leader takes 4.1s: set 8s to tolerate that" in slower


@pytest.mark.parametrize(
    ("count", "every", "warned"), [(20, "1s", False), (21, "1s", True), (11, "500ms", True)]
)
def test_many_items_that_confirm_often_are_a_warning(
    tmp_path: Path, count: int, every: str, warned: bool
) -> None:
    names = ", ".join(f"e{number:02}" for number in range(count))
    session = f"session: {{confirm_every: {every}}}"
    text = printed(tmp_path, f"elections: {{'${{EACH}}': {{for_each: [{names}], {session}}}}}")
    assert (f"{count} items have a confirm_every, so this node sends up to" in text) is warned
    assert "confirm_every, so" not in printed(
        tmp_path, f"elections: {{'${{EACH}}': {{for_each: [{names}]}}}}"
    )


UNTYPED = "a typographic quote or dash, or a no-break or zero-width space, is a letter to it: type it anew\n"


@pytest.mark.parametrize(
    ("item", "at"),
    [
        ("on_lose: [{shell: 'echo “x y”'}]", "elections.app.on_lose[0].shell"),
        ("on_lose: [{shell: 'A=‘x y’ run'}]", "elections.app.on_lose[0].shell"),
        ("on_lose: [{shell: 'systemctl\u00a0stop app'}]", "elections.app.on_lose[0].shell"),
        ("run: {shell: '“serve”'}", "elections.app.run.shell"),
        ("candidate_check: {shell: 'test “$A”'}", "elections.app.candidate_check.shell"),
    ],
)
def test_quotes_of_a_word_processor_are_a_warning(tmp_path: Path, item: str, at: str) -> None:
    text = f"elections: {{app: {{{item}, session: {{lock_delay: 45s}}}}}}\n"
    assert f": {at}: {UNTYPED}" in printed(tmp_path, text)


@pytest.mark.parametrize(
    "item",
    [
        """on_lose: [{shell: "logger 'now “x” leads'"}]""",
        "on_lose: [{shell: 'echo \"“x” leads\"'}]",
        "on_lose: [{shell: 'echo it’s done'}]",
        "on_lose: [{exec: [logger, '“x” leads']}]",
        "on_change: [{webhook: 'http://h/', body: '“x” leads'}]",
    ],
)
def test_such_quotes_within_a_text_are_no_warning(tmp_path: Path, item: str) -> None:
    assert UNTYPED not in printed(tmp_path, f"elections: {{app: {{{item}}}}}\n")


# --- items with equal figures ----------------------------------------------------------------------


def test_items_with_equal_figures_share_a_paragraph(tmp_path: Path) -> None:
    text = """
elections:
  first: {contend: false}
  between: {session: {ttl: none, lock_delay: 60s}}
  third: {key: the/third, contend: false}
semaphores:
  three: {limit: 3, contend: false}
  other: {limit: 3, contend: false}
  two: {limit: 2, contend: false}
"""
    alike, between, semaphores, two = printed(tmp_path, text).split("\n\n")
    assert alike == (
        "first  key service/first/leader\nthird  key the/third\n  role         observes: no session, no lease"
    )
    assert between.startswith("between\n  key          service/between/leader\n  role         contends\n")
    assert semaphores == (
        "three  prefix service/three\n"
        "other  prefix service/other\n"
        "  slots        3 at most, fewer where .lock in Consul says so\n"
        "  role         observes: no session, no lease"
    )
    assert two.startswith("two\n  prefix       service/two\n")


# --- the verdict --------------------------------------------------------------------------------------


def loaded(tmp_path: Path, text: str) -> Config:
    return configured(tmp_path, text)


PATH = Path("c.yaml")
DOUBTFUL = "session: {ttl: 5s, lock_delay: 45s}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("elections: {a: {}}", "c.yaml: valid, 1 election, no warnings"),
        ("semaphores: {a: {limit: 1}}", "c.yaml: valid, 1 semaphore, no warnings"),
        (
            f"elections: {{a: {{{DOUBTFUL}}}, b: {{}}}}\nsemaphores: {{c: {{limit: 1}}, d: {{limit: 1}}}}",
            "c.yaml: valid, 2 elections, 2 semaphores, 1 warning",
        ),
        (f"elections: {{a: {{{DOUBTFUL}}}, b: {{{DOUBTFUL}}}}}", "c.yaml: valid, 2 elections, 2 warnings"),
        (
            f'elections: {{"${{EACH}}": {{for_each: [a, b], {DOUBTFUL}}}}}',
            "c.yaml: valid, 2 elections, 1 warning",
        ),
    ],
)
def test_the_verdict_counts_items_and_warnings(tmp_path: Path, text: str, line: str) -> None:
    assert verdict(PATH, loaded(tmp_path, text)) == line


def test_the_verdict_counts_the_findings_about_consul(tmp_path: Path) -> None:
    config = loaded(tmp_path, "elections: {a: {}}")
    levels = (Level.OK, Level.ERROR, Level.WARNING, Level.UNTOLD, Level.WARNING)
    found = [Finding("rights", level, f"it is {level}", "remedy") for level in levels]
    line = "c.yaml: valid, 1 election, no warnings; Consul: "
    assert verdict(PATH, config, found=found) == f"{line}1 fault, 2 warnings"
    assert verdict(PATH, config, found=[]) == f"{line}no faults, no warnings"
    assert faults_text(found) == ("consul\n  error        rights: it is error\n               remedy\n")
    assert faults_text(found[:1]) == faults_text() == ""


def problems(*files: str) -> tuple[Problem, ...]:
    return tuple(Problem(file, 1, 1, "elections", "cannot") for file in files)


@pytest.mark.parametrize(
    ("files", "line"),
    [
        (("a",), "c.yaml: not valid, 1 fault"),
        (("a", "a", "b"), "c.yaml: not valid, 3 faults in 2 files"),
        (("a",) * PROBLEMS_MAX, f"c.yaml: not valid, {PROBLEMS_MAX} faults or more"),
    ],
)
def test_the_verdict_of_a_refusal_counts_faults_and_files(files: tuple[str, ...], line: str) -> None:
    assert refused_verdict(PATH, problems(*files)) == line
    assert refused_verdict(PATH, problems(*files), problems("v")) == f"{line}, 1 warning"


@pytest.mark.parametrize(
    ("keys", "fence", "shown"),
    [
        (
            "ttl: 10s",
            "exclusive: true",
            """
  failover     65s at most after a crash while Consul keeps its leader: 2 x ttl
               + lock_delay where fence fails; else Consul's own election and 20s more
  usually      22s + fence after a crash of the machine: Consul ends the session in 20s
               (2 x ttl), then after 2s, then fence
  fence        spares a leader that says within after 2s that it stops. A supervisor that
               hangs longer is shot: an after of WatchdogSec + 3s (13s as shipped) avoids that
""",
        ),
        (
            "node_checks: [serfHealth]",
            "after: 3s",
            """
  failover     110s at most after a crash while Consul keeps its leader: 2 x ttl + lock_delay in Consul
               + lock_delay where fence fails; else Consul's own election and 20s more
  usually      51s to 54s + fence after a crash of the machine: Consul ends the session in 6s to 9s
               (serfHealth; 2 x ttl at most), then the longer of 45s in Consul and after 3s, then fence
""",
        ),
        (
            "ttl: 10s",
            "exclusive: true, required: true",
            """
  failover     no limit after a crash: until fence succeeds, the former leader says that it has ended, or an
               operator has made sure of that and runs `consul-supervisor confirm-off app`
""",
        ),
        (
            "ttl: 10s",
            "exclusive: true, outage: 15m",
            """
  outage       15m without an answer from Consul are ridden out. Others wait, unless fence succeeds, for
               15m54s = (outage 15m + 2 x interval 3.33s + lose_time 0s) / 0.95 by the tenure record
  failover     16m14s at most after a crash while Consul keeps its leader: 2 x ttl
               + 15m54s where fence fails; else Consul's own election and 20s more
""",
        ),
        (
            "ttl: none",
            "exclusive: true, required: true, outage: 24h",
            """
  outage       24h without an answer from Consul are ridden out. Others wait, unless fence succeeds, for
               an operator
""",
        ),
    ],
    ids=["exclusive", "not exclusive", "required", "outage", "required, outage"],
)
def test_the_failover_with_a_fence_is_that_with_its_guard(
    tmp_path: Path, keys: str, fence: str, shown: str
) -> None:
    item = f"{{session: {{lock_delay: 45s, {keys}}}, fence: {{shell: off, {fence}}}}}"
    assert shown in printed(tmp_path, f"elections: {{app: {item}}}")


def test_methods_and_a_limit_are_printed_and_what_differs_is_warned_of(tmp_path: Path) -> None:
    methods = "[{name: bmc, shell: a, timeout: 10s}, {name: pdu, webhook: 'https://h/', timeout: 20s}]"
    file = f"fence_limit: {{machines: 2}}\nelections: {{app: {{fence: {{try: {methods}}}}}"
    shown = printed(tmp_path, f"{file}}}")
    assert "tries bmc 11s, then pdu 20s: mostly the first, and all take 31s at most" in shown
    assert "switches off 2 machines at most within 10m (fence_limit)" in shown
    assert "is switched off twice" in printed(tmp_path, f"{file}, b: {{fence: {{shell: other}}}}}}")
    many = ", ".join(f"e{number}: {{fence: {{shell: off}}}}" for number in range(11))
    assert "set fence_limit: {machines: 2}" in printed(tmp_path, f"elections: {{{many}}}")
    assert "set fence_limit" not in printed(tmp_path, f"fence_limit: {{machines: 9}}\nelections: {{{many}}}")


def test_an_outage_that_is_ridden_out_leaves_no_silence_to_warn_of_and_run_to_start(tmp_path: Path) -> None:
    short = "session: {lock_delay: 12s}, run: {exec: [a], stop_timeout: 500ms}"
    fence = "fence: {shell: off, exclusive: true, outage: 1m}"
    lasting = printed(tmp_path, f"elections: {{app: {{{short}, {fence}}}}}")
    assert "whose change of leader takes" not in lasting
    assert "fence.outage: a supervisor that starts again while Consul is silent does not start run" in lasting
    assert "whose change of leader takes" in printed(tmp_path, f"elections: {{app: {{{short}}}}}")
