"""Proofs of the laboratory's windows, made once: each window draws its secrets from one seed."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from functools import wraps
from hashlib import sha256
from typing import Any

import pytest
from ragaudit import core


def _remembering(function: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[bytes, Any] = {}

    @wraps(function)
    def run(*given: Any, **options: Any) -> Any:
        if options:
            return function(*given, **options)
        case = sha256(pickle.dumps(given)).digest()
        if case not in known:
            known[case] = function(*given)
        return known[case]

    return run


REMEMBERING = {
    name: _remembering(getattr(core, name))
    for name in (
        "commit_rows", "prove_index", "prove_selection", "prove_ties", "prove_charges",
        "prove_budget", "verify_index", "verify_selections",
    )
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def remembered_proofs() -> Iterator[None]:
    """What is proven again of the same secrets is the proof that was made of them.

    What was accepted is not verified again, what was rejected is.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, function in REMEMBERING.items():
            patch.setattr(core, name, function)
        yield
