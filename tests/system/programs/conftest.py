"""Measurements of these tests are printed at the end of the run, and asserted nowhere."""

from collections.abc import Callable

import pytest

MEASURED = "measured"


@pytest.fixture
def measured(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Return a function that records a sentence with a figure, also in a worker without output."""
    return lambda sentence: record_property(MEASURED, sentence)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print all sentences in the order in which their tests ended."""
    passed = terminalreporter.stats.get("passed", [])
    sentences = [str(said) for report in passed for name, said in report.user_properties if name == MEASURED]
    if sentences:
        terminalreporter.section("measured")
    for sentence in sentences:
        terminalreporter.write_line(sentence)
