"""What these tests measure is printed at the end of the run, and asserted nowhere."""

from collections.abc import Callable

import pytest

MEASURED = "measured"


@pytest.fixture
def measured(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Takes a sentence with a figure; also from a worker, whose output nobody sees."""
    return lambda sentence: record_property(MEASURED, sentence)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """All of them, in the order in which their tests ended."""
    passed = terminalreporter.stats.get("passed", [])
    sentences = [str(said) for report in passed for name, said in report.user_properties if name == MEASURED]
    if sentences:
        terminalreporter.section("measured")
    for sentence in sentences:
        terminalreporter.write_line(sentence)
