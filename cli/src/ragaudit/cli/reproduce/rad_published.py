"""What the RAD paper prints, and an independent recomputation of it.

Digits are text, so that a comparison knows how many of them were given. The recomputed values were
made before this code and by other means (enumeration, quadrature, root finding); ours have to meet
them. Balboa et al., "Understanding disclosure risk in differential privacy", extended version.
"""

from typing import NamedTuple

__all__ = [
    "CONTINUOUS", "CONTINUOUS_DENSITY", "CROSSINGS", "FIGURE_1", "FIGURE_3", "SCALES", "SIMPLEX",
    "TABLE_1", "Cells",
]  # fmt: skip

FIGURE_1 = {
    ("OUE", 14.0): "0.454543",
    ("Laplace", 14.0): "0.457650",
    ("Gaussian", 1 / 14): "0.469157",
    ("Gaussian", 0.3): "0.120334",
    ("Gaussian", 1.0): "0.036252",
    ("Gaussian", 3.0): "0.012089",
}
"""m = 11, uniform prior, exact guesses: the optimum at an epsilon, or a standard deviation."""

CROSSINGS = {"Laplace": "11.94799", "OUE": "13.48965"}
"""m = 11: the epsilon at which Gaussian noise of sd 1/epsilon has the same advantage as these."""

FIGURE_3 = {
    ("Corollary 5.6", 1.0): "0.131977",
    ("Corollary 5.6", 3.0): "0.590571",
    ("Theorem 5.1", 3.0): "0.814634",
}
"""m = 10, delta = 1e-5, uniform prior, exact guesses: the bound at an epsilon."""

SCALES = {
    "Theorem 5.1, second form": ("22", "21.93316"),
    "Theorem 5.1, first form": (None, "22.73087"),
    "Theorem 4.2": (None, "35.78834"),
    "Theorem 5.1, two records": ("22", "43.86632"),
    "Theorem 4.2, two records": (None, "71.577"),
}
"""Example 5.7, m = 10, T = 100, advantage 0.1: sigma as printed and recomputed."""

SIMPLEX = {
    (2, 22.0): ("0.08989", "0.17528", "0.17528"),
    (3, 22.0): ("0.1198589", "0.2337091", "0.1667228"),
    (10, 5.0): ("0.60390", "0.85905", "0.60617"),
}
"""Example 5.7's bound, T = 100, at (m, sigma); with the mu of two records; and the exact optimum of
gradients that form a regular simplex of norm C. The optimum is above the first."""

CONTINUOUS_DENSITY = {1.0: "1.270747", 10.0: "5.033918"}
"""Section A.2: M of the exponential mechanism on [0, 1], by epsilon."""

CONTINUOUS = {
    ("uniform", 1.0, 0.5): "0.042332",
    ("uniform", 5.0, 0.5): "0.193661",
    ("uniform", 1.0, 0.75): "0.028389",
    ("beta", 1.0, 0.1): "0.0544",
    ("beta", 5.0, 0.1): "0.2444",
    ("beta", 10.0, 0.1): "0.3830",
    ("beta", 10.0, 0.5): "0.4081",
    ("beta", 1.0, 0.75): "0.0554",
    ("beta", 5.0, 0.75): "0.2471",
    ("beta", 10.0, 0.75): "0.3795",
}
"""Figures 10 and 11: exponential mechanism on [0, 1] by prior, epsilon and eta (quadrature)."""


class Cells(NamedTuple):
    """A row of Table 1 to the right of its assumptions.

    Attributes:
        bounds: theorems that bound the advantage.
        composition: whether they compose.
        robustness: equations of reconstruction robustness (ReRo) that hold.
    """

    bounds: tuple[str, ...]
    composition: str
    robustness: tuple[str, ...]


_ANY_DELTA = ("Eq. (3)", "Eq. (1) if delta = 0")

TABLE_1: tuple[tuple[str, str, str, Cells | None, Cells, str], ...] = (
    (
        "total variation", "any", "any",
        Cells(("Theorem 4.2",), "yes", ()), Cells(("Theorem 4.2",), "yes", ()), "",
    ),
    (
        "f-DP", "none", "any",
        Cells(("Theorem 5.1",), "yes", ("Eq. (3)",)),
        Cells(("Theorem 4.2", "Theorem 5.1"), "yes", ("Eq. (3)",)),
        "f-DP gives total variation, so Theorem 4.2 holds too.",
    ),
    (
        "f-DP", "none", "exact", None,
        Cells(("Corollary 5.6", "Theorem 4.2", "Theorem 5.1", "Theorem 5.5"), "yes", ("Eq. (3)",)),
        "f-DP is (epsilon, delta)-DP for many pairs: Theorem 5.5 and Corollary 5.6 hold at each.",
    ),
    (
        "f-DP", "full", "exact", None, Cells(("Theorem 4.2",), "yes", ()),
        "f-DP gives total variation, so Theorem 4.2 holds with any knowledge.",
    ),
    (
        "mechanism", "known", "any",
        Cells(("Theorem 4.3",), "no", ()),
        Cells(("Theorem 4.2", "Theorem 4.3"), "joint law only", ()),
        "It composes only through the joint law of all outputs.",
    ),
    (
        "(epsilon, delta)", "any", "any",
        Cells(("Theorem 4.2",), "yes", ()), Cells(("Theorem 4.2",), "yes", ()), "",
    ),
    (
        "(epsilon, delta)", "none", "any",
        Cells(("Proposition 5.3",), "yes", ("Eq. (1)",)),
        Cells(("Proposition 5.3", "Theorem 4.2", "Theorem 5.1"), "yes", _ANY_DELTA),
        "ReRo: Eq. (1) is for delta = 0 only; otherwise Eq. (3) with f of (epsilon, delta).",
    ),
    (
        "(epsilon, delta)", "none", "exact",
        Cells(("Theorem 5.5",), "yes", ("Eq. (1)",)),
        Cells(
            ("Corollary 5.6", "Proposition 5.3", "Theorem 4.2", "Theorem 5.1", "Theorem 5.5"),
            "yes", _ANY_DELTA,
        ),
        "All rows above hold too; the least wins. Corollary 5.6 if the prior is uniform.",
    ),
)  # fmt: skip
"""Knowledge of the mechanism, auxiliary knowledge, eta; the paper's cells, what holds, and what is
to be added. Eq. (1) is Balle, Cherubin and Hayes', Eq. (3) that of Hayes, Balle and Mahloujifar."""
