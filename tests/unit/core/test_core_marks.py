"""Commitments to marked rows: those of the same positions, whatever is marked."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ragaudit import core
from ragaudit.core import MalformedInput

BLINDING = bytes([9]) + bytes(31)


@given(st.lists(st.booleans(), max_size=40))
def test_marked_rows_are_selected_positions(marks: list[bool]) -> None:
    marked = np.array(marks, dtype=np.bool_)
    expected = core.commit_selection(np.flatnonzero(marked).tolist(), BLINDING)
    assert core.commit_marked(marked, BLINDING) == expected


@pytest.mark.parametrize(
    ("marks", "blinding"),
    [
        ([True], BLINDING),
        (np.array([1], dtype=np.uint8), BLINDING),
        (np.array([[True]]), BLINDING),
        (np.array([True, False, True])[::2], BLINDING),
        (np.array([True]), bytes(31)),
        (np.array([True]), b"\xff" * 32),
    ],
)
def test_other_arguments_are_malformed(marks: Any, blinding: bytes) -> None:
    with pytest.raises(MalformedInput):
        core.commit_marked(marks, blinding)
