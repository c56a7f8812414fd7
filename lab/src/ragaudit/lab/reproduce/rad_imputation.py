"""Table 2: an attack that imputes a label from public attributes and looks at no output.

The paper's Census and Texas records are not used; two sets of records that scikit-learn brings
stand in: handwritten digits (the label: one of ten) and breast cancer (the label: one of two).
What is computed is the game of the paper: J = 1, every record of the universe once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from ragaudit.encoding.errors import RagauditError
from ragaudit.lab.reproduce.comparison import Comparison, Table
from ragaudit.lab.reproduce.rad_published import TABLE_2
from ragaudit.lab.risk.estimation import contributions
from ragaudit.lab.risk.priors import FinitePrior
from ragaudit.lab.risk.threat import AuxiliaryKnowledge, SuccessSets, ThreatModel
from ragaudit.lab.risk.validation import FloatArray, IntegerArray

__all__ = ["REPEATS", "Imputation", "impute", "table"]

REPEATS = 5
"""Seeds, as in the paper."""

LARGEST_UNIVERSE = 1000
TREES = 50
ROUNDING = 1e-9

IDENTITY = (
    "An attack that ignores the output succeeds as often whoever is in the data: RAD is 0 for "
    "every data set, prior and classifier, without sampling error. ReRo is the classifier's "
    "accuracy, here on other data than in the paper: it says nothing of the paper's figure."
)


@dataclass(frozen=True, slots=True)
class Imputation:
    """One data set, attacked with ``REPEATS`` seeds.

    Attributes:
        data: which, and ``stands_for`` the paper's.
        known, records: of which the classifier is made, and of the universe that is attacked.
        labels: values of the sensitive attribute.
        success: share of records whose label is named (ReRo), per seed.
        advantage: RAD, per seed.
    """

    data: str
    stands_for: str
    known: int
    records: int
    labels: int
    success: tuple[float, ...]
    advantage: tuple[float, ...]


def impute(
    generator: np.random.Generator, advance: Callable[[int], object] = lambda done: None
) -> tuple[Imputation, ...]:
    """Attack both data sets without looking at any output.

    Args:
        generator: of all randomness.
        advance: called with 1 after each seed.

    Raises:
        RagauditError: scikit-learn is not installed.
    """
    found = []
    for data, stands_for, attributes, labels in _data():
        runs = []
        for _ in range(REPEATS):
            runs.append(_attacked(attributes, labels, generator))
            advance(1)
        known, records, success, advantage = zip(*runs, strict=True)
        found.append(
            Imputation(data, stands_for, known[0], records[0], len(np.unique(labels)), success,
                       advantage)
        )  # fmt: skip
    return tuple(found)


def table(found: tuple[Imputation, ...]) -> Table:
    """Return RAD of the attack beside the paper's, and what ReRo makes of it."""
    rows = tuple(
        Comparison(f"RAD of the imputation, {each.data} (for {each.stands_for})",
                   TABLE_2[each.stands_for][1], "0", float(np.mean(each.advantage)),
                   tolerance=ROUNDING)
        for each in found
    )  # fmt: skip
    success = tuple(
        f"ReRo, {each.data}, {each.known} known, {each.records} attacked, {each.labels} labels: "
        f"{np.mean(each.success):.3f} (sd over {REPEATS} seeds "
        f"{np.std(each.success, ddof=1):.3f}); the paper has {TABLE_2[each.stands_for][0]} for "
        f"{each.stands_for}."
        for each in found
    )
    return Table("table-2", "Imputation without looking at any output", "Table 2", rows,
                 (*success, IDENTITY))  # fmt: skip


def _data() -> list[tuple[str, str, FloatArray, IntegerArray]]:
    try:
        from sklearn.datasets import load_breast_cancer, load_digits  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise RagauditError(
            "the imputation needs scikit-learn",
            expected="install ragaudit-lab with its extra `digits`",
        ) from error
    digits: Any = load_digits()
    cancer: Any = load_breast_cancer()
    return [
        (name, stands_for, np.asarray(bundle.data), np.asarray(bundle.target, dtype=np.int64))
        for name, stands_for, bundle in (
            ("digits", "Census", digits), ("breast cancer", "Texas", cancer),
        )
    ]  # fmt: skip


def _attacked(
    attributes: FloatArray, labels: IntegerArray, generator: np.random.Generator
) -> tuple[int, int, float, float]:
    """Impute once: how many are known and attacked, ReRo and RAD."""
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415 - an extra

    order = generator.permutation(len(labels))
    size = min(LARGEST_UNIVERSE, len(order) // 2)
    universe, known = order[:size], order[size:]
    seed = int(generator.integers(0, 2**31))
    classifier = RandomForestClassifier(TREES, random_state=seed)
    named = classifier.fit(attributes[known], labels[known]).predict(attributes[universe])
    true = labels[universe]
    # A guess is a record: the first of the universe that has the label that was named.
    first = {int(label): int(np.flatnonzero(true == label)[0]) for label in np.unique(true)}
    by_record = np.array([first[int(label)] for label in named])
    knowledge = AuxiliaryKnowledge.of_labels([row.tobytes() for row in attributes[universe]])
    threat = ThreatModel(
        FinitePrior.uniform(size),
        SuccessSets.from_losses((true[:, None] != true).astype(float), 0.0),
        knowledge,
    )
    # Of the same output, the attack names of each class what its public attributes give.
    per_class = np.array([by_record[members[0]] for members in knowledge.classes])
    guesses = np.broadcast_to(per_class, (size, len(per_class)))
    advantage = float(contributions(np.arange(size), guesses, threat).mean())
    return len(known), size, float((named == true).mean()), advantage
