"""The lines of the story, each with its time. It must never wait for anything."""

import time
from collections.abc import Callable


class Story:
    """Lines with their times, coloured on a terminal."""

    def __init__(self, say: Callable[[str], None], *, colours: bool) -> None:
        self._say = say
        self._colours = colours
        self._began = time.monotonic()

    def chapter(self, title: str) -> None:
        """A new part of the story; its lines count their seconds from here."""
        self._say("")
        self._say(self._paint("1", title))
        self._began = time.monotonic()

    def line(self, who: str, text: str, colour: str = "") -> None:
        """What happened just now."""
        elapsed_s = time.monotonic() - self._began
        self._say(f"{elapsed_s:8.3f} s  {self._paint(colour, f'{who:<8}')}  {text}")

    def _paint(self, colour: str, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colours and colour else text
