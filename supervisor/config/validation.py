"""Validates a configuration: every deviation from the schema becomes a problem with its place."""

from typing import Any

from supervisor.config.messages import mistakes
from supervisor.config.problems import Report
from supervisor.config.schema_errors import TOO_MANY, deviations


def validate(data: dict[str, Any], document: dict[str, Any], report: Report) -> None:
    """Report everything in ``data`` that the schema ``document`` does not allow.

    Raises ConfigError when a list or mapping has too many entries, because its entries were not validated
    and no later step can use them.
    """
    unseen = False
    for deviation in deviations(data, document):
        unseen = unseen or deviation.keyword in TOO_MANY
        for mistake in mistakes(deviation, document["$defs"]):
            refuse = report.refuse_key if mistake.at_key else report.refuse
            refuse(mistake.path, mistake.message)
        assert report.broken(), f"a deviation without a sentence: {deviation.keyword}"
    if unseen:
        report.raise_if_any()
