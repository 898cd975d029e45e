"""Count the processor time of each test: ``make slowest`` prints the most expensive ones.

A plugin of pytest. The time is that of the worker and of the children that it has awaited, so what a test
shares with others, such as an agent of the session, counts for the test that starts or ends it.
"""

import os
from collections.abc import Generator

import pytest

CPU_S = "cpu_s"
SHARE = 0.75  # print the fewest tests that together take this much


def _spent_s() -> float:
    """Return the processor time of this process and of the children that it has awaited."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Remember the time before set-up."""
    item.stash[_BEGAN] = _spent_s()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the last report of each test what it took."""
    report = yield
    if call.when == "teardown":
        report.user_properties.append((CPU_S, _spent_s() - item.stash[_BEGAN]))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the fewest tests that take three quarters of the time, and the folders of all."""
    spent_s: dict[str, float] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == CPU_S:
                    spent_s[report.nodeid] = spent_s.get(report.nodeid, 0) + value
    whole_s = sum(spent_s.values())
    files_s: dict[str, float] = {}
    for test, took_s in spent_s.items():
        file = test.partition("::")[0]
        files_s[file] = files_s.get(file, 0) + took_s
    terminalreporter.section(f"{len(spent_s)} tests took {whole_s:.0f} CPU seconds")
    for kind, costs in (("files", files_s), ("tests", spent_s)):
        told_s = 0.0
        lines = []
        for name, took_s in sorted(costs.items(), key=lambda cost: -cost[1]):
            if told_s > SHARE * whole_s:
                break
            told_s += took_s
            lines.append(f"{took_s:8.2f}  {name}")
        terminalreporter.write_line(f"{len(lines)} of {len(costs)} {kind} took {told_s:.0f} of them:")
        for line in lines:
            terminalreporter.write_line(line)


_BEGAN = pytest.StashKey[float]()
