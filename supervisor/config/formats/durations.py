"""Durations as Go and Consul write them: ``500ms``, ``15s``, ``1h30m``. Never a bare number.

Units are h, m, s and ms. The schema's pattern has accepted every text of a configuration before it is parsed.
"""

import re

_PART = re.compile(r"([0-9.]+)(ms|s|m|h)")
_DIVISORS = {"ms": 1000.0, "s": 1.0, "m": 1 / 60, "h": 1 / 3600}
_PLAIN_SECONDS_MAX = 120.0  # because more seconds read better as minutes


def parse_duration(text: str) -> float:
    """Return the duration in seconds. Raises ValueError when ``text`` is no duration."""
    if not text or _PART.sub("", text):
        raise ValueError("no duration")
    return sum(float(number) / _DIVISORS[unit] for number, unit in _PART.findall(text))


def format_duration(length_s: float) -> str:
    """Return a short text such as ``0.5s``, ``21.5s`` or ``2m10s``, rounded to hundredths of a second.

    From two minutes on the text is rounded to whole seconds.
    """
    if abs(length_s) < _PLAIN_SECONDS_MAX:
        return f"{length_s:.2f}".rstrip("0").rstrip(".") + "s"
    minutes, rest_s = divmod(round(length_s), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest_s, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number)
