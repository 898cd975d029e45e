"""Two supervisors with equal elections on one Consul, and the state in which they rest.

One lives as long as the soak, and its resources are judged. The other may be stopped and killed. At rest the
first holds all elections and the other waits for all, so that each rest finds equal counts.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import psutil

from supervisor.reporting.control import OperatorCommand, Verb
from supervisor.reporting.control.fetch import DaemonUnreachable, ask
from tests.support.consul import Agent, free_ports
from tests.support.supervisor import Supervisor, until
from tests.system.soak.look import Look, look

ELECTIONS = 100
RUNS = 10  # elections with a run child
OPTIONAL = 3  # the last elections, which another file does not have
NAMES = tuple(f"e{number:02}" for number in range(ELECTIONS))
KEYS = "soak/"
SESSION = {"ttl": "10s", "lock_delay": "15s"}
REST_WITHIN_S = 300.0  # a lock-delay, a session that expires, and a busy machine
# A session that was being made when its process was killed belongs to no process. Until it expires, it may be
# counted in place of a session that is still to come, but not for this long.
RESTS_S = 2.0
REST_TRIES = 3  # a supervisor without CPU time for longer than its lease loses, and that is no leak
LOSE = {"timeout": "1s", "kill_after": "100ms"}
QUICK = {"timeout": "1s", "kill_after": "100ms"}
LIVING, OTHER = "living", "other"

T = TypeVar("T")


class Pair:
    """Two supervisors that run as soon as the pair is made; ``close`` ends them."""

    def __init__(self, agent: Agent, folder: Path, webhook_url: str) -> None:
        self.agent = agent
        self._webhook_url = webhook_url
        self._rests_since = 0.0
        (self.port,) = free_ports(1)
        self.living = Supervisor(folder / LIVING, self.config(LIVING))
        self.other = Supervisor(folder / OTHER, self.config(OTHER))
        self.living.forks = self.other.forks = False  # the memory of a fork is not its own
        self.living.start()
        until(lambda: self._holds_all(LIVING), "the first holds all", REST_WITHIN_S)
        self.other.start()

    # --- configuration ---------------------------------------------------------------------------

    def config(self, who: str, count: int = ELECTIONS, timeout: str = "20s") -> dict[str, Any]:
        """Return the content of a file with ``count`` of the elections and this timeout of on_acquire."""
        elections = {name: self._election(n, name, who, timeout) for n, name in enumerate(NAMES[:count])}
        config: dict[str, Any] = {"consul": {"address": self.agent.url}, "elections": elections}
        if who == LIVING:
            config["http"] = {"listen": f"127.0.0.1:{self.port}"}
        return config

    def _election(self, number: int, name: str, who: str, timeout: str) -> dict[str, Any]:
        """Return one election.

        Each tenth of the elections is of another kind: one that prints, one that is slow, one that fails at
        first, one that is late.
        """
        plain = {"exec": ["true"], "timeout": timeout, "kill_after": "100ms"}
        election: dict[str, Any] = {
            "key": f"{KEYS}{name}",
            "value": f"{who} {timeout}",
            "session": {**SESSION, "name": f"soak-{who}"},
            "on_acquire": [plain],
            "on_lose": [{"exec": ["true"], **LOSE}],
            "rejoin_delay": "1s",
        }
        more: dict[int, dict[str, Any]] = {
            0: {"on_acquire": [{**_shell("seq 50; seq 50 >&2"), "timeout": timeout}]},
            1: {"on_change": [{"webhook": self._webhook_url, "timeout": "1s"}]},
            2: {"on_acquire": [{**_shell("sleep 0.2"), "timeout": timeout}]},
            3: {"candidate_check": {"exec": ["true"], "interval": "5s", "rise": 1}},
            4: {"run": {"exec": ["sleep", "7200"], "stop_timeout": "500ms"}},
            5: {"on_acquire": [{**_shell('[ "$CONSUL_SUPERVISOR_ATTEMPT" = 2 ]'), "retries": 1,
                                "retry_delay": "100ms"}]},
            6: {"on_change": [{**_shell("sleep 5"), "timeout": "500ms"}]},
            7: {"on_change": [_shell("echo $CONSUL_SUPERVISOR_LEADER")]},
        }  # fmt: skip
        return election | more.get(number % 10, {})

    # --- commands and states ---------------------------------------------------------------------

    def tell(self, supervisor: Supervisor, command: OperatorCommand, within_s: float = 10.0) -> bool:
        """Send a command; return False when the reply takes longer than that, or the supervisor is down."""
        try:
            ask(str(supervisor.folder / "control.sock"), command, within_s=within_s)
        except DaemonUnreachable:
            return False
        return True

    def rest(self) -> Look:
        """Bring both to rest and return a look at the first.

        At rest the first holds everything, the other waits for everything, and no hook runs. Raise
        AssertionError when that does not come.
        """
        self.living.rewrite(self.config(LIVING))
        for supervisor, verb in (
            (self.living, Verb.RELOAD),
            (self.living, Verb.RESUME),
            (self.other, Verb.RESUME),
        ):
            heard = partial(self.tell, supervisor, OperatorCommand(verb))
            until(heard, f"{verb} is heard:\n{supervisor.log_tail()}", REST_WITHIN_S)
        for _ in range(REST_TRIES):
            code = self.other.stop()
            assert code == 0, f"the other ended with {code}:\n{self.other.log_tail()}"
            self._wait(lambda: self._holds_all(LIVING), "the first holds all")
            self.other.start()
            self._rests_since = time.monotonic()
            seen = self._wait(lambda: self._at_rest() or self._holds_any(OTHER), "all waits")
            if isinstance(seen, Look):
                return seen
        raise AssertionError(f"no rest: {self._state()}")

    def _wait(self, condition: Callable[[], T], what: str) -> T:
        return until(condition, what, REST_WITHIN_S, self._state)

    def _at_rest(self) -> Look | None:
        """Return a look that shows a rest; None when there is none, such as while a candidate_check runs."""
        now = time.monotonic()
        if not self._holds_all(LIVING) or len(self._sessions(OTHER)) != ELECTIONS:
            self._rests_since = now
        if now - self._rests_since < RESTS_S:
            return None
        seen = look(self.living.pid)
        return seen if len(seen.children) == RUNS and not seen.dead else None

    def _holds_any(self, who: str) -> bool:
        sessions = self._sessions(who)
        return any(entry["Session"] in sessions for entry in self._entries())

    def _holds_all(self, who: str) -> bool:
        sessions = self._sessions(who)
        return sum(entry["Session"] in sessions for entry in self._entries()) == len(sessions) == ELECTIONS

    def _entries(self) -> list[dict[str, Any]]:
        return self.agent.kv_list(KEYS)

    def _sessions(self, who: str) -> set[str]:
        return {session["ID"] for session in self.agent.sessions() if session["Name"] == f"soak-{who}"}

    def _state(self) -> str:
        held = sum(entry["Session"] in self._sessions(LIVING) for entry in self._entries())
        return (
            f"{held} held, sessions {len(self._sessions(LIVING))} and {len(self._sessions(OTHER))}, "
            f"{look(self.living.pid)}"
        )

    # --- the end ---------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop both in order; assert that nothing is left and that no fault is in their logs."""
        for supervisor in (self.living, self.other):
            assert supervisor.stop() == 0, supervisor.log_tail()
            supervisor.assert_no_fault()
            records = [path.name for path in supervisor.state_dir.glob("*.journal")]
            assert not records, f"records are left: {records}"
        assert not self.agent.sessions(), "sessions are left"

    def close(self) -> None:
        for supervisor in (self.living, self.other):
            children = psutil.Process(supervisor.pid).children(recursive=True) if supervisor.running else []
            supervisor.close()
            for child in children:
                child.kill() if child.is_running() else None


def _shell(text: str) -> dict[str, object]:
    return {"shell": text, **QUICK}
