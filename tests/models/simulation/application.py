"""The application that hooks start and end on a node, and that must never run twice.

It is up from the start of the first on_acquire hook or of the run child. It is down when every on_lose hook
has succeeded since, or the last resort has. The belief of the supervisor does not matter here.
"""

from supervisor.core.actions import HookContext
from supervisor.core.settings import ItemSettings

NEVER = float("inf")


class Application:
    """The application of one node.

    session: the session of the tenure for which it was started.
    answerable_until: until then the supervisor answers for it. After a death or a freeze of the supervisor,
        this is the end of its last room.
    """

    def __init__(self, settings: ItemSettings) -> None:
        self.session = ""
        self.answerable_until = NEVER
        self._parts = tuple(hook.name for hook in settings.on_lose)
        self._resorts = tuple(hook.name for hook in settings.on_lose_failure)
        self._up: tuple[str, ...] = ()
        self._resort_left: tuple[str, ...] = ()

    @property
    def up(self) -> bool:
        """Whether something acts that on_lose would end."""
        return bool(self._up)

    def begin(self, context: HookContext) -> None:
        """Record that a hook of on_acquire or the run child has started."""
        if not self.up or context.session != self.session:
            self.answerable_until = NEVER
        self.session = context.session
        self._up = self._parts
        self._resort_left = self._resorts

    def lost(self, hook: str) -> None:
        """Record that a hook of on_lose or on_lose_failure has succeeded."""
        self._up = tuple(part for part in self._up if part != hook)
        if hook in self._resort_left:
            self._resort_left = tuple(part for part in self._resort_left if part != hook)
            if not self._resort_left:
                self._up = ()

    def down(self) -> None:
        """Record that the power is off, or that an operator has ended the application."""
        self._up = ()
