"""Disturbances of the two supervisors, one act after the other, all from one seed.

The seed decides which act comes when and to which election; how the processes interleave depends on the
machine. After an act both run, and everything that the act began may still be under way.
"""

import random
import time
import urllib.request
from collections import Counter
from collections.abc import Callable

from supervisor.reporting.control import OperatorCommand, Verb
from tests.support.consul import HOST
from tests.support.supervisor import Supervisor, until
from tests.system.soak.pair import ELECTIONS, KEYS, NAMES, OPTIONAL, Pair

PAUSE_S = (0.0, 0.3)  # from one act to the next
AT_ONCE = 10  # elections that are handed over, or lose their session, by one act
HANG_UP_S = 0.05  # shorter than a reply, which comes when another node holds, so that many hand-overs overlap
STEPPED_S = 1.0
DOWN_S = (0.0, 1.5)  # restarts soon enough that tenures are adopted
FROZEN_S = 1.0
READS = ("/v1/status", "/metrics", "/healthz", "/leader/e00", "/")
UP_WITHIN_S = 30.0


class Churn:
    """The acts in turn; ``acts``: how many of each kind there were."""

    def __init__(self, pair: Pair, seed: int) -> None:
        self.acts: Counter[str] = Counter()
        self._pair = pair
        self._random = random.Random(seed)
        self._kinds: dict[str, tuple[int, Callable[[], None]]] = {
            "hand-over of ten": (30, self._hand_over),
            "ten sessions destroyed": (6, self._destroy),
            "value overwritten": (6, self._overwrite),
            "status and metrics read": (8, self._read),
            "another file": (5, self._reload),
            "pause and resume": (5, self._pause),
            "pause of all": (2, self._pause_all),
            "kill of the other": (4, self._kill),
            "stop of the other": (4, self._stop),
            "Consul frozen for 1 s": (2, self._freeze),
        }

    def act(self) -> None:
        """Do one act, then pause."""
        kinds = list(self._kinds)
        (kind,) = self._random.choices(kinds, [weight for weight, _ in self._kinds.values()])
        self._kinds[kind][1]()
        self.acts[kind] += 1
        time.sleep(self._random.uniform(*PAUSE_S))

    # --- elections -------------------------------------------------------------------------------

    def _hand_over(self) -> None:
        """Step down from some elections; the supervisor that does not hold one refuses."""
        for name in self._random.sample(NAMES, AT_ONCE):
            command = OperatorCommand(Verb.STEP_DOWN, name, STEPPED_S)
            for supervisor in (self._pair.living, self._pair.other):
                self._pair.tell(supervisor, command, HANG_UP_S)

    def _destroy(self) -> None:
        entries = self._pair.agent.kv_list(KEYS)
        held = [entry["Session"] for entry in entries if entry["Session"]]
        for session in self._random.sample(held, min(AT_ONCE, len(held))):
            self._pair.agent.session_destroy(session)

    def _overwrite(self) -> None:
        """Change the values of some keys, which is no loss; hooks are notified."""
        for name in self._random.sample(NAMES, AT_ONCE):
            self._pair.agent.kv_put(f"{KEYS}{name}", str(self._random.random()).encode())

    # --- the one that lives ----------------------------------------------------------------------

    def _read(self) -> None:
        for path in READS:
            try:
                urllib.request.urlopen(f"http://{HOST}:{self._pair.port}{path}", timeout=5).read()
            except OSError:
                pass  # status 503: the node does not hold, or is not healthy

    def _reload(self) -> None:
        """Reload another file.

        Sometimes it lacks some elections, which end then, and begin again with a later file.
        """
        count = ELECTIONS - self._random.choice((0, OPTIONAL))
        timeout = f"{self._random.randint(10, 30)}s"
        living = self._pair.living
        living.rewrite(self._pair.config("living", count, timeout))
        self._pair.tell(living, OperatorCommand(Verb.RELOAD))

    def _pause_all(self) -> None:
        self._pair.tell(self._pair.living, OperatorCommand(Verb.PAUSE))
        time.sleep(self._random.uniform(*DOWN_S))
        self._pair.tell(self._pair.living, OperatorCommand(Verb.RESUME))

    # --- either, or the other --------------------------------------------------------------------

    def _pause(self) -> None:
        """Pause some elections; some are resumed only by the next rest."""
        supervisor = self._random.choice((self._pair.living, self._pair.other))
        for verb in (Verb.PAUSE, Verb.RESUME):
            for name in self._random.sample(NAMES, AT_ONCE):
                self._pair.tell(supervisor, OperatorCommand(verb, name))

    def _kill(self) -> None:
        self._pair.other.kill()
        self._start(self._pair.other)

    def _stop(self) -> None:
        code = self._pair.other.stop()
        assert code == 0, f"the other ended with {code}:\n{self._pair.other.log_tail()}"
        self._start(self._pair.other)

    def _start(self, supervisor: Supervisor) -> None:
        """Start the supervisor and wait until it handles signals.

        Before that, a signal would end it without a line in its log.
        """
        time.sleep(self._random.uniform(*DOWN_S))
        socket = supervisor.folder / "control.sock"
        socket.unlink(missing_ok=True)  # the lines before a kill prove nothing
        supervisor.start()
        until(socket.is_socket, f"it is up:\n{supervisor.log_tail()}", UP_WITHIN_S)

    # --- Consul ----------------------------------------------------------------------------------

    def _freeze(self) -> None:
        self._pair.agent.freeze()
        time.sleep(FROZEN_S)
        self._pair.agent.thaw()
        self._pair.agent.wait_ready()
