"""A configuration against its schema: every deviation becomes a problem with its place.

What conforms is not shown to jsonschema, whose import alone takes longer than the rest of the work.
"""

from typing import Any

from supervisor.config.conformance import MOST, conforms
from supervisor.config.messages import findings
from supervisor.config.problems import Report
from supervisor.config.schema_errors import deviations


def validate(data: dict[str, Any], document: dict[str, Any], report: Report) -> None:
    """Report everything in ``data`` that the schema ``document`` does not allow. Raises ConfigError where
    that was too much to look at."""
    if conforms(data, document):
        return
    try:
        _report_all(data, document, report)
    except ImportError as error:  # of a daemon that is older than what is installed by now
        why = f"it has faults, which cannot be told ({error})"
        report.refuse((), f"cannot be used: {why}: ask `consul-supervisor check`, and restart the daemon")


def _report_all(data: dict[str, Any], document: dict[str, Any], report: Report) -> None:
    """Raises ConfigError where something has too many entries: they were not looked at, so no later step
    can use them."""
    unseen = False
    for deviation in deviations(data, document):
        unseen = unseen or deviation.keyword in MOST
        for finding in findings(deviation, document["$defs"]):
            refuse = report.refuse_key if finding.at_key else report.refuse
            refuse(finding.path, finding.message)
        assert report.problems, f"a deviation without a sentence: {deviation.keyword}"
    if unseen:
        report.raise_if_any()
