"""Each module of errors draws its classes as a tree; the drawing is complete."""

import importlib
import inspect
import re
from collections.abc import Collection
from types import ModuleType

import pytest
from ragaudit.encoding.errors import RagauditError

MODULES = (
    "ragaudit.encoding.errors",
    "ragaudit.ledger.errors",
    "ragaudit.serving.generators",
    "ragaudit.prover.errors",
    "ragaudit.verifier.service.errors",
    "ragaudit.client.errors",
)
ROOTS = (
    "RagauditError", "MalformedError", "RejectedError", "UnsupportedError", "RefusedError",
    "UnavailableError", "InternalError",
)  # fmt: skip


def tree_of(module: ModuleType, classes: Collection[str]) -> list[str]:
    """Names of classes in the drawing, each time that they stand there."""
    lines = (module.__doc__ or "").splitlines()
    drawn = [line for line in lines if re.match(r"\s*(RagauditError|[├│└])", line)]
    words = re.findall(r"\b[A-Z]\w+", "\n".join(drawn))
    # Words with a second capital are names of classes, existing or not; the others may be prose.
    return [word for word in words if word in classes or re.search(r"[a-z][A-Z]", word)]


def classes_of(module: ModuleType) -> dict[str, type[RagauditError]]:
    return {
        name: kind
        for name, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, RagauditError) and kind.__module__ == module.__name__
    }


@pytest.mark.parametrize("name", MODULES)
def test_the_drawn_tree_is_complete(name: str) -> None:
    module = importlib.import_module(name)
    classes = classes_of(module)
    drawn = tree_of(module, classes)
    assert set(classes) <= set(drawn)
    bases = {base.__name__ for kind in classes.values() for base in kind.__mro__}
    assert set(drawn) - set(classes) <= bases
    assert all(drawn.count(kind) == 1 for kind in classes)


@pytest.mark.parametrize("name", MODULES)
def test_only_roots_are_called_errors(name: str) -> None:
    classes = classes_of(importlib.import_module(name))
    # A ValueError besides, and called as those are.
    named = {kind for kind in classes if kind.endswith("Error")} - {"InvalidArgumentError"}
    assert named <= set(ROOTS)
