"""Evidence of a window with one item changed, drawn by Hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck
from hypothesis import strategies as st
from procedure_cases import Items
from ragaudit.verifier.procedure import Outcome, Status

SETTINGS: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}


@st.composite
def changed_bytes(
    draw: st.DrawFn, played: Callable[[], Items], among: list[str]
) -> tuple[str, bytes]:
    """One of these items, with other bytes; ``played`` makes the evidence when it is needed."""
    items = played()
    name = draw(st.sampled_from(among))
    data = items[name]
    at = draw(st.integers(0, len(data) - 1))
    kind = draw(st.sampled_from(["flip", "cut", "insert", "remove", "other item", "twice"]))
    if kind == "flip":
        bit = 1 << draw(st.integers(0, 7))
        return name, data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]
    if kind == "cut":
        return name, data[:at]
    if kind == "insert":
        return name, data[:at] + draw(st.binary(min_size=1, max_size=9)) + data[at:]
    if kind == "remove":
        return name, data[:at] + data[at + 1 :]
    if kind == "other item":
        other = draw(st.sampled_from([each for each in among if items[each] != data]))
        return name, items[other]
    return name, data + data


def assert_sound(outcome: Outcome, name: str, tolerant: set[str]) -> None:
    """A changed item fails a check, and what did not run names one that failed."""
    failing = set(outcome.failed)
    for check in outcome.checks:
        if check.status is Status.NOT_RUN:
            assert failing & set(check.needs), (name, check)
    if outcome.result == "PASS":
        assert name in tolerant, name
    else:
        assert failing, name
