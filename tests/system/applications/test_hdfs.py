"""examples/hdfs: of two NameNodes one is active, and never both.

Fakes stand in for ``hdfs``, ``ssh``, ``sudo`` and ``systemctl``. The fake hdfs keeps the state of each
NameNode and records the calls. It would make a second NameNode active (the real haadmin refuses where it
can), so that only our scripts prevent it. It refuses as the real one does when the other NameNode does not
answer (HAAdmin.isOtherTargetNodeActive).
"""

import os
import time
from collections.abc import Iterator

import pytest

from tests.support.programs import script
from tests.support.supervisor import Supervisor, until
from tests.system.applications.stage import EXAMPLES, Stage, end_all

FOLDER = EXAMPLES / "hdfs"
# These times are shorter and there is no user hdfs; a lose_time of 13 s leaves a room of 6 s.
SESSION = {"ttl": "2s", "lock_delay": "20s"}
REPLACED = {
    "user: hdfs": "user: root",
    "interval: 15s": "interval: 1s",
    "timeout: 15s": "timeout: 5s",
    "rejoin_delay: 30s": "rejoin_delay: 1s",
}
HDFS = """\
set -eu
id=$3
forced=
if [ "$3" = --forceactive ]; then id=$4 forced=" $3"; fi
case "$1 $2 $id" in
"getconf -confKey dfs.nameservices") echo cluster ;;
"getconf -confKey dfs.ha.namenodes.cluster") echo nn-a,nn-b ;;
"getconf -confKey dfs.namenode.rpc-address.cluster."*) echo "${id##*.}.example.net:8020" ;;
"haadmin "*)
    # A hung one accepts the call and never answers.
    while [ -e "$CLUSTER/$id-hangs" ] && ! grep -q down "$CLUSTER/$id"; do sleep 0.05; done
    if grep -q down "$CLUSTER/$id" || [ -e "$CLUSTER/$id-refuses" ]; then
        case $2 in *Health) ;; *) echo "call $NODE $2 $id failed" >>"$RECORD" ;; esac
        if [ "$2" = -checkHealth ] && ! grep -q down "$CLUSTER/$id"; then exit 0; fi
        echo "Operation failed: Call to $id.example.net:8020 failed" >&2
        exit 255
    fi
    case $2 in
    -checkHealth) ;;
    -transitionToStandby) "$SET" "$id" standby "call $NODE $2 $id" ;;
    -transitionToActive)
        # The other one is asked first, and must answer.
        for other in nn-a nn-b; do
            [ -z "$forced" ] && [ "$other" != "$id" ] && grep -q down "$CLUSTER/$other" || continue
            echo "Unexpected error occurred: Call to $other.example.net:8020 failed" >&2
            exit 255
        done
        "$SET" "$id" active "call $NODE $2$forced $id" ;;
    *) exit 255 ;;
    esac ;;
*) exit 255 ;;
esac
"""
# All states are written here; the record has them in the order in which they became true.
SET = """\
set -eu
exec 9>>"$CLUSTER/lock"
flock 9
printf '%s\\nstate %s %s\\n' "$3" "$1" "$2" >>"$RECORD"
echo "$2" >"$CLUSTER/$1.new"
mv "$CLUSTER/$1.new" "$CLUSTER/$1"
"""
SSH = """\
set -eu
[ "$1 $2 $3 $4" = "-o BatchMode=yes -o ConnectTimeout=5" ]
host=${5%%.*}
if [ -e "$CLUSTER/$host-is-gone" ]; then
    echo "ssh: connect to host $5 port 22: No route to host" >&2
    exit 255
fi
AT=$host exec sh -c "$6"
"""
SUDO = '[ "$1" = -n ] && shift && exec "$@"'
# Acts on the machine that ssh has named, otherwise on the node's own machine.
SYSTEMCTL = """\
set -eu
id=${AT:-$HDFS_NAMENODE_ID}
case "$*" in
"kill --signal=KILL hadoop-hdfs-namenode" | "stop hadoop-hdfs-namenode")
    "$SET" "$id" down "call $NODE systemctl-$1 $id" ;;
"show --property=LoadState --value hadoop-hdfs-namenode") echo loaded ;;
"show --property=LoadState --value "*) echo not-found ;;
"is-active hadoop-hdfs-namenode")
    if grep -q down "$CLUSTER/$id"; then echo failed; exit 3; fi
    echo active ;;
*) exit 1 ;;
esac
"""
PROGRAMS = {"hdfs": HDFS, "set": SET, "ssh": SSH, "sudo": SUDO, "systemctl": SYSTEMCTL}


class Cluster:
    """Two NameNodes, nn-a and nn-b, with a supervisor each; both begin as standby, as real ones do."""

    def __init__(self, stage: Stage, **environment: str) -> None:
        self._folder = stage.folder / "cluster"
        programs = self._folder / "bin"
        programs.mkdir(parents=True)
        for name, text in PROGRAMS.items():
            script(programs / name, text)
        self._record = self._folder / "record"
        self._record.touch()
        places = {"/usr/bin/systemctl": str(programs / "systemctl")}
        self.supervisors: dict[str, Supervisor] = {}
        for name in ("nn-a", "nn-b"):
            (self._folder / name).write_text("standby\n")
            environ = {
                "NODE": name,
                "HDFS_NAMENODE_ID": name,
                "HDFS_FENCE": str(FOLDER / "hdfs-fence"),
                "HDFS_GRACE_S": "1",
                "HDFS_LOSE_GRACE_S": "3",
                "HDFS_IS_OFF": str(self._folder / "is-off"),
                "CLUSTER": str(self._folder),
                "RECORD": str(self._record),
                "SET": str(programs / "set"),
                "PATH": f"{programs}:{os.environ['PATH']}",
                **environment,
            }
            self.supervisors[name] = stage.supervisor(
                name, FOLDER / "namenode.yaml", environ, {**REPLACED, **places}, SESSION
            )

    def start(self) -> tuple[Supervisor, Supervisor]:
        """Start both supervisors; return when nn-a is active and nn-b waits."""
        a, b = self.supervisors.values()
        a.start()
        self.wait_active("nn-a")
        a.wait_line("role", role="holding")
        b.start()
        until((b.folder / "control.sock").exists, "it runs")
        return a, b

    def mark(self, what: str) -> None:
        """Make a mark that the fakes read, such as ``nn-a-hangs``."""
        (self._folder / what).touch()

    def marked(self, what: str) -> bool:
        return (self._folder / what).exists()

    def state(self, name: str) -> str:
        """Return the state of a NameNode: active, standby or down."""
        return (self._folder / name).read_text().strip()

    def break_down(self, name: str) -> None:
        with self._record.open("a") as file:
            file.write(f"state {name} down\n")
        (self._folder / name).write_text("down\n")

    def wait_active(self, name: str) -> None:
        until(lambda: self.state(name) == "active", f"{name} is active: {self.record()}")

    def end(self) -> None:
        """End everything that still runs, such as a hung call of a node that was killed."""
        for node in self.supervisors.values():
            node.close()
        end_all(self._folder)

    def record(self) -> list[str]:
        """Return the calls (``call BY WHAT OF-WHOM``) and the states after them (``state WHOSE WHICH``)."""
        return self._record.read_text().splitlines()

    def calls(self, by: str) -> list[str]:
        """Return this node's calls, ``WHAT OF-WHOM``, oldest first."""
        return [line.removeprefix(f"call {by} ") for line in self.record() if line.startswith(f"call {by} ")]

    def most_active_at_once(self) -> int:
        states: dict[str, str] = {}
        most = 0
        for words in (line.split() for line in self.record() if line.startswith("state ")):
            states[words[1]] = words[2]
            most = max(most, list(states.values()).count("active"))
        return most


@pytest.fixture
def cluster(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Yield the cluster; assert at the end of each test that two NameNodes were never active at once."""
    made = Cluster(stage, **getattr(request, "param", {}))
    try:
        yield made
    finally:
        made.end()
    assert made.most_active_at_once() == 1, made.record()


def test_a_new_leader_fences_the_other_namenode_first_and_a_stopped_one_is_standby(cluster: Cluster) -> None:
    a, b = cluster.start()
    assert cluster.calls("nn-a") == ["-transitionToStandby nn-b", "-transitionToActive nn-a"]
    asked_at = time.monotonic()
    assert a.stop() == 0
    assert cluster.state("nn-a") == "standby"
    cluster.wait_active("nn-b")
    print(f"a planned hand-over took {time.monotonic() - asked_at:.2f} s")
    assert cluster.calls("nn-a")[2:] == ["-transitionToStandby nn-a"]
    assert cluster.calls("nn-b") == ["-transitionToStandby nn-a", "-transitionToActive nn-b"]
    assert b.stop() == 0
    a.assert_no_fault()
    b.assert_no_fault()


def test_a_namenode_that_does_not_become_standby_is_killed(cluster: Cluster) -> None:
    """on_lose_failure kills the NameNode before the other node can be promoted, and then nothing is stuck."""
    a, b = cluster.start()
    cluster.mark("nn-a-refuses")
    assert a.stop() == 0
    assert cluster.calls("nn-a")[2:] == ["-transitionToStandby nn-a failed", "systemctl-kill nn-a"]
    assert cluster.state("nn-a") == "down"
    assert a.lines("hook-started", event_kind="lose-failure") and not a.lines("role", role="stuck")
    cluster.wait_active("nn-b")
    assert b.stop() == 0


@pytest.mark.parametrize("how", ["answers", "hangs"])
def test_after_a_crash_the_active_one_is_fenced_before_the_other_becomes_active(
    cluster: Cluster, how: str
) -> None:
    """The supervisor is dead, its NameNode still active: it is made standby, or else killed over ssh."""
    a, b = cluster.start()
    a.kill()
    if how == "hangs":
        cluster.mark("nn-a-hangs")
    killed_at = time.monotonic()
    cluster.wait_active("nn-b")
    print(f"nn-a {how}: nn-b was active {time.monotonic() - killed_at:.1f} s after the kill")
    asked = (
        ["-transitionToStandby nn-a"] if how == "answers" else ["systemctl-kill nn-a", "systemctl-stop nn-a"]
    )
    force = "" if how == "answers" else "--forceactive "
    assert cluster.calls("nn-b") == [*asked, f"-transitionToActive {force}nn-b"]
    assert cluster.state("nn-a") == ("standby" if how == "answers" else "down")
    assert b.stop() == 0


def test_no_namenode_is_active_while_the_other_is_not_known_to_be_off(cluster: Cluster) -> None:
    """A dead machine does not answer.

    An operator must confirm that it is off, and the confirmation is used once.
    """
    a, b = cluster.start()
    a.kill()
    cluster.break_down("nn-a")
    cluster.mark("nn-a-is-gone")
    until(lambda: len(b.lines("role", reason="acquire-failed", role="losing")) >= 2, "b tries twice")
    assert "state nn-b active" not in cluster.record()
    assert "nobody can say that nn-a is not active" in b.log_text
    cluster.mark("is-off-nn-a.example.net")
    cluster.wait_active("nn-b")
    until(lambda: b.lines("role", role="holding"), "it leads")
    assert not cluster.marked("is-off-nn-a.example.net")
    assert b.stop() == 0


@pytest.mark.parametrize("cluster", [{"HDFS_UNIT": "hadoop-namenode"}], indirect=True)
def test_a_missing_unit_does_not_count_as_a_namenode_that_has_ended(cluster: Cluster) -> None:
    """systemd reports a missing unit as inactive; on_lose fails, and the last resort kills the right unit."""
    a, b = cluster.start()
    cluster.mark("nn-a-refuses")
    assert a.stop() == 0
    assert "systemd knows no unit hadoop-namenode: set HDFS_UNIT" in a.log_text
    assert cluster.state("nn-a") == "down"
    assert b.stop() == 0


def test_a_namenode_that_has_ended_gives_the_lead_to_the_other(cluster: Cluster) -> None:
    """on_lose finds that the NameNode does not run, so there is nothing to make standby, and succeeds."""
    a, b = cluster.start()
    cluster.break_down("nn-a")
    broken_at = time.monotonic()
    cluster.wait_active("nn-b")
    print(f"nn-b was active {time.monotonic() - broken_at:.1f} s after nn-a had ended")
    a.wait_line("role", role="losing", reason="unhealthy")
    assert not a.lines("hook-started", event_kind="lose-failure")
    for node in (a, b):
        assert node.stop() == 0
