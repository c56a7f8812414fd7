"""Times of an account's entries, in both channels, never decrease in log order."""

from typing import Any

import pytest
from ragaudit.ledger.messages.entries import Generated, Void
from ragaudit.verifier.procedure.framework import Findings
from ragaudit.verifier.procedure.logged import ChargeSummary, RecordSummary, ReplySummary
from ragaudit.verifier.procedure.record_checks import in_order


def record(entry: int, time: int) -> RecordSummary:
    empty: dict[str, Any] = dict.fromkeys(RecordSummary._fields, 0)
    return RecordSummary(**{**empty, "entry": entry, "time": time})


def charge(entry: int, time: int) -> ChargeSummary:
    return ChargeSummary(0, entry, "w", "acme", b"p" * 32, 0, 0, time)


def answer(entry: int, time: int) -> ReplySummary:
    return ReplySummary(entry, Generated.KIND, time)


def void(entry: int, time: int) -> ReplySummary:
    return ReplySummary(entry, Void.KIND, time)


MADE = {"record": record, "charge": charge, "answer": answer, "void": void}
OWNERS: dict[str, type[Any]] = {
    "record": RecordSummary,
    "charge": ChargeSummary,
    "answer": ReplySummary,
    "void": ReplySummary,
}


def faults(*entries: Any, kind: type[Any]) -> list[str]:
    found = Findings("owner")
    assert list(in_order(entries, found, kind)) == [each for each in entries if type(each) is kind]
    return found.faults


@pytest.mark.parametrize("before", MADE)
@pytest.mark.parametrize("after", MADE)
def test_the_check_of_the_later_entry_owns_a_pair_out_of_order(before: str, after: str) -> None:
    name = "record 5" if after == "record" else f"{after} entry 5"
    pair = MADE[before](4, 11), MADE[after](5, 10)
    for kind in (RecordSummary, ChargeSummary, ReplySummary):
        due = [f"{name}: earlier than the account's {before} before it"]
        assert faults(*pair, kind=kind) == (due if kind is OWNERS[after] else [])


def test_equal_times_and_rising_ones_are_none() -> None:
    entries = record(1, 5), charge(2, 5), charge(3, 6), answer(4, 6), record(5, 6), void(6, 9)
    for kind in (RecordSummary, ChargeSummary, ReplySummary):
        assert faults(*entries, kind=kind) == []
    assert faults(kind=RecordSummary) == []
