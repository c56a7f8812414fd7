"""What a report says of the samples: of records, and of the rows of indexes."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ragaudit.verifier.report import wording
from ragaudit.verifier.report.parts import Table, shown_text

__all__ = ["of_rows", "statement", "strata"]


def statement(sampling: Mapping[str, Any], counts: Mapping[str, Any]) -> str:
    """Return what was looked at of the records, in a sentence.

    Args:
        sampling, counts: members of the predicate.
    """
    drawn = sampling.get("strata")
    if not drawn or not isinstance(drawn, Sequence):
        return wording.NO_SAMPLING
    if sampling.get("mode") != "A":
        return wording.SAMPLED
    tenants = [one for one in drawn if str(_member(one, "id")).startswith("tenant:")]
    whole = all(_member(one, "sample") == _member(one, "population") for one in tenants)
    covered = sum(n for one in tenants if isinstance(n := _member(one, "population"), int))
    # Mode A states no more than it did: strata that leave records of the log out are said to.
    return (
        wording.ALL_CHECKED
        if whole and covered == counts.get("records")
        else wording.STRATA_CHECKED
    )


def of_rows(member: object) -> Table | None:
    """Return the samples of the rows of each index; None where none were sampled.

    Args:
        member: ``rows`` of the predicate's ``sampling``.
    """
    found = _member(member, "strata")
    if not isinstance(found, list):
        return None
    # Each has its beta beside it: another one than that of the records.
    beta = _member(member, "beta")
    listed = [{"beta": beta, **each} for each in found if isinstance(each, Mapping)]
    return strata(listed, {"population": "Rows"})


def strata(listed: object, called: Mapping[str, str] = MappingProxyType({})) -> Table | None:
    """Return all members of strata as columns, in the order of the labels; None without any.

    Args:
        listed: ``strata`` of the predicate's ``sampling``, as signed.
        called: headings of members that have another one than their label.
    """
    if not isinstance(listed, list) or not listed:
        return None
    rows = [stratum if isinstance(stratum, Mapping) else {"id": stratum} for stratum in listed]
    rows = [{**row, "bad": wording.missed(row)} if "bad" in row else row for row in rows]
    keys = sorted({key for row in rows for key in row}, key=_column)
    labels = {key: wording.LABELS.get(key, (key.replace("_", " "), ""))[0] for key in keys}
    headings = tuple(called.get(key, label) for key, label in labels.items())
    return Table(headings, tuple(tuple(shown_text(row.get(k)) for k in keys) for row in rows))


def _column(name: str) -> tuple[bool, tuple[int, str]]:
    return name != "id", wording.place(name)


def _member(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, Mapping) else None
