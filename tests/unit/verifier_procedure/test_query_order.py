"""Times of an account's queries, in both channels, never decrease in log order."""

from dataclasses import replace
from typing import Any

import pytest
from generation_messages import CHARGE
from ragaudit.verifier.procedure.framework import Findings
from ragaudit.verifier.procedure.generation_facts import LoggedCharge
from ragaudit.verifier.procedure.logged_records import RecordSummary
from ragaudit.verifier.procedure.record_checks import in_order


def record(entry: int, time: int) -> RecordSummary:
    empty: dict[str, Any] = dict.fromkeys(RecordSummary._fields, 0)
    return RecordSummary(**{**empty, "entry": entry, "time": time})


def charge(entry: int, time: int) -> LoggedCharge:
    return LoggedCharge(entry, b"", replace(CHARGE, time=time))


def faults(*queries: Any, kind: Any) -> list[str]:
    found = Findings("owner")
    assert list(in_order(queries, found, kind)) == list(queries)
    return found.faults


@pytest.mark.parametrize("before", [record, charge])
@pytest.mark.parametrize(("after", "kind"), [(record, RecordSummary), (charge, LoggedCharge)])
def test_the_check_of_the_later_entry_owns_a_pair_out_of_order(
    before: Any, after: Any, kind: Any
) -> None:
    what = "record" if before is record else "charge"
    name = "record 5" if after is record else "charge entry 5"
    pair = before(4, 11), after(5, 10)
    assert faults(*pair, kind=kind) == [f"{name}: earlier than the account's {what} before it"]
    other = LoggedCharge if kind is RecordSummary else RecordSummary
    assert faults(*pair, kind=other) == []


def test_equal_times_and_rising_ones_are_none() -> None:
    queries = record(1, 5), charge(2, 5), charge(3, 6), record(4, 6), record(5, 9)
    for kind in (RecordSummary, LoggedCharge):
        assert faults(*queries, kind=kind) == []
    assert faults(kind=RecordSummary) == []
