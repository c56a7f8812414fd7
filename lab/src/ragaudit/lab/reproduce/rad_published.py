"""What the RAD paper prints, and an independent recomputation of it.

Digits are text, so that a comparison knows how many of them were given. The recomputed values were
made before this code and by other means (enumeration, quadrature, root finding); ours have to meet
them. Balboa et al., "Understanding disclosure risk in differential privacy", extended version.
"""

from typing import NamedTuple

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

FIGURE_2 = {
    "0.2": ("0.662236", "4.321928", "2.726833"),
    "0.4": ("0.283146", "2.160964", "1.861353"),
    "0.5": ("0.205233", "1.861353", "1.634706"),
    "0.6": ("0.151491", "1.634706", "1.412906"),
    "0.8": ("0.075745", "1.186086", "0.930677"),
}
"""m = 10: error at a risk, noise calibrated to RAD, to ReRo at the same number, and to ReRo at the
success of an attack that has that advantage (bisection of success and of the best test)."""

FIGURE_3 = {
    ("Corollary 5.6", 1.0): "0.131977",
    ("Corollary 5.6", 3.0): "0.590571",
    ("Theorem 5.1", 3.0): "0.814634",
}
"""m = 10, delta = 1e-5, uniform prior, exact guesses: the bound at an epsilon."""

FIGURE_6 = {
    ("uniform", 1.0, 0): "0.004938",
    ("uniform", 1.0, 40): "0.110280",
    ("uniform", 1.0, 80): "0.065725",
    ("uniform", 1.0, 100): "0.000000",
    ("uniform", 4.0, 0): "0.019605",
    ("uniform", 4.0, 40): "0.312467",
    ("uniform", 4.0, 80): "0.157781",
    ("uniform", 4.0, 100): "0.000000",
    ("uniform", 10.0, 0): "0.048288",
    ("uniform", 10.0, 40): "0.460712",
    ("uniform", 10.0, 80): "0.193967",
    ("uniform", 10.0, 100): "0.000000",
    ("stand-in for Adult's", 1.0, 0): "0.014525",
    ("stand-in for Adult's", 1.0, 40): "0.053195",
    ("stand-in for Adult's", 1.0, 80): "0.020258",
    ("stand-in for Adult's", 1.0, 100): "0.000000",
    ("stand-in for Adult's", 4.0, 0): "0.054567",
    ("stand-in for Adult's", 4.0, 40): "0.162926",
    ("stand-in for Adult's", 4.0, 80): "0.048891",
    ("stand-in for Adult's", 4.0, 100): "0.000000",
    ("stand-in for Adult's", 10.0, 0): "0.135407",
    ("stand-in for Adult's", 10.0, 40): "0.275957",
    ("stand-in for Adult's", 10.0, 80): "0.060330",
    ("stand-in for Adult's", 10.0, 100): "0.000000",
    ("1/2 at 0 and at 100", 1.0, 0): "0.196735",
    ("1/2 at 0 and at 100", 1.0, 40): "0.196735",
    ("1/2 at 0 and at 100", 1.0, 80): "0.196735",
    ("1/2 at 0 and at 100", 1.0, 100): "0.000000",
    ("1/2 at 0 and at 100", 4.0, 0): "0.432332",
    ("1/2 at 0 and at 100", 4.0, 40): "0.432332",
    ("1/2 at 0 and at 100", 4.0, 80): "0.432332",
    ("1/2 at 0 and at 100", 4.0, 100): "0.000000",
    ("1/2 at 0 and at 100", 10.0, 0): "0.496631",
    ("1/2 at 0 and at 100", 10.0, 40): "0.496631",
    ("1/2 at 0 and at 100", 10.0, 80): "0.496631",
    ("1/2 at 0 and at 100", 10.0, 100): "0.000000",
}
"""Records 0 to 100, Laplace noise of scale 100/epsilon, clamped: the optimum by prior, epsilon and
eta (midpoint sums over the outputs, the clamp's atoms apart)."""

FIGURE_6_CLAIMS = {"worst": ("0.496631", "0.611943"), "best": ("0.019605", "0.054567")}
"""What two sentences on the figure would have as the largest advantage, and a larger one."""

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

FIGURE_11 = {
    (1.0, 0.1): "0.0544",
    (1.0, 0.25): "0.0586",
    (1.0, 0.5): "0.0585",
    (1.0, 0.75): "0.0554",
    (2.0, 0.1): "0.1073",
    (2.0, 0.25): "0.1157",
    (2.0, 0.5): "0.1153",
    (2.0, 0.75): "0.1091",
    (5.0, 0.1): "0.2444",
    (5.0, 0.25): "0.2658",
    (5.0, 0.5): "0.2628",
    (5.0, 0.75): "0.2471",
    (10.0, 0.1): "0.3830",
    (10.0, 0.25): "0.4210",
    (10.0, 0.5): "0.4081",
    (10.0, 0.75): "0.3795",
    (15.0, 0.1): "0.4506",
    (15.0, 0.25): "0.4923",
    (15.0, 0.5): "0.4652",
    (15.0, 0.75): "0.4285",
}
"""Exponential mechanism on [0, 1], Beta(0.1, 0.1), by epsilon and eta: the optimum by sums over
40,000 records of equal probability and 3,000 outputs."""

TABLE_2 = {"Census": ("0.81", "0"), "Texas": ("0.73", "0")}
"""ReRo and RAD of the imputation attack, as printed."""


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
