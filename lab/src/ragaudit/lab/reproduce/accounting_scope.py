"""What the collusion paper's numbers take for granted: sensitivity, document, relation, window."""

from ragaudit.lab.reproduce.accounting_cells import DELTA, PaperCell, exactly_calibrated
from ragaudit.lab.reproduce.comparison import Comparison, Table
from ragaudit.privacy.accounting import collusion
from ragaudit.privacy.guarantees import GaussianDp

__all__ = ["JOINT_DELTA", "lower_bound_table", "scope_table"]

JOINT_DELTA = "joint delta (k + 1) delta_acc, Theorem 3.4"

SENSITIVITY = (
    "Replacing a document moves a score of unit vectors by up to 2, not 1; the slack of (3.4) "
    "hides it, noise that just meets the promise does not."
)
CHUNKS = (
    "A document of c chunks moves c scores: sensitivity 2 sqrt(c). The paper counts a document as "
    "one coordinate. Largest c for which even the slack of (3.4) keeps the promise."
)
ADD_REMOVE = (
    "One (eps, delta) is stated for adding, removing and replacing. An added row is returned with "
    "probability K/N per query in one world only: no delta below that serves (k accounts, K = 5)."
)
WINDOWS = (
    "Budgets are reset every window, documents stay: w windows cost what w times as many "
    "queries cost."
)
LOWER = (
    "The paper gives limits for its grid at score gap 0.1: 0.025, and 0.01 up to eps_acc = 2. The "
    "cell k = 100, eps_acc = 2 is above the second."
)
TWICE = "The attack's advantage is 2 Phi(z) - 1, about twice what (3.10) keeps of it."


def scope_table() -> Table:
    """Return what each assumption is worth."""
    rows = []
    for epsilon_acc, over_noised, just_enough in (
        ("0.5", "0.101", "1.053"), ("1", "0.213", "2.123"),
        ("2", "0.446", "4.318"), ("4", "0.939", "8.898"),
    ):  # fmt: skip
        where = f"one account, eps_acc = {epsilon_acc}, sensitivity 2"
        rows += [
            Comparison(f"{where}, noise of (3.4)", epsilon_acc, over_noised,
                       _epsilon(PaperCell(epsilon_acc, 1).gaussian, 2), SENSITIVITY),
            Comparison(f"{where}, just enough noise", epsilon_acc, just_enough,
                       _epsilon(exactly_calibrated(epsilon_acc), 2), SENSITIVITY),
        ]  # fmt: skip
    for epsilon_acc, most in (("0.5", "19"), ("1", "17"), ("2", "16"), ("4", "14")):
        rows.append(
            Comparison(f"chunks per document, eps_acc = {epsilon_acc}", "1", most,
                       _most_chunks(epsilon_acc), CHUNKS, tolerance=0,
                       formula="document as one coordinate, section 2.2")
        )  # fmt: skip
    for size, accounts, corrected in (
        (10**5, 1, "0.393"), (10**5, 10, "0.993"), (10**6, 1, "0.0488"), (10**6, 10, "0.393"),
    ):  # fmt: skip
        least = float(collusion.exposure(size, 5, accounts * 10_000))
        rows.append(
            Comparison(f"delta under add-remove, N = {size}, k = {accounts}",
                       str(float((accounts + 1) * DELTA)), corrected, least, ADD_REMOVE,
                       formula=JOINT_DELTA)
        )  # fmt: skip
    for windows, over_noised, just_enough in ((12, "1.318", "15.12"), (52, "2.94", "39.5")):
        where = f"{windows} windows, k = 10, eps_acc = 1"
        rows += [
            Comparison(f"{where}, noise of (3.4)", "3.16", over_noised,
                       _composed(PaperCell("1", 10).gaussian, windows), WINDOWS),
            Comparison(f"{where}, just enough noise", "3.16", just_enough,
                       _composed(exactly_calibrated("1", 10), windows), WINDOWS),
        ]  # fmt: skip
    return Table("scope", "What is taken for granted", "sections 2.2, 2.3, 3.5", tuple(rows))


def lower_bound_table() -> Table:
    """Return the advantage of the paper's attack at score gap 0.1."""
    rows = []
    for (epsilon_acc, accounts), limit, kept, advantage in (
        (("4", 100), "0.025", "0.02226", "0.0445"),
        (("2", 50), "0.01", "0.00787", "0.0157"),
        (("2", 100), "0.01", "0.01113", None),
    ):
        whole = PaperCell(epsilon_acc, accounts).gaussian
        gap = GaussianDp(whole.mu / 10, whole.relation)
        where = f"k = {accounts}, eps_acc = {epsilon_acc}"
        found = float(collusion.membership_lower_bound(gap))
        rows.append(Comparison(f"{where}: (3.10)", limit, kept, found, LOWER))
        if advantage is not None:
            exact = float(gap.total_variation().value)
            rows.append(Comparison(f"{where}: advantage", limit, advantage, exact, TWICE))
    return Table("lower-bound", "Advantage at score gap 0.1", "section 3.8, (3.10)", tuple(rows))


def _epsilon(guarantee: GaussianDp, factor: int) -> float:
    """The exact epsilon at 1e-6 when the sensitivity is ``factor`` times what was assumed."""
    scaled = GaussianDp(factor * guarantee.mu, guarantee.relation)
    return float(scaled.at_delta(DELTA).epsilon)


def _composed(guarantee: GaussianDp, times: int) -> float:
    return float(GaussianDp.compose([guarantee] * times).at_delta(DELTA).epsilon)


def _most_chunks(epsilon_acc: str) -> float:
    """The largest c with 2 sqrt(c) times the assumed sensitivity within the promise."""
    allowed = exactly_calibrated(epsilon_acc).mu
    return float((allowed / (2 * PaperCell(epsilon_acc, 1).gaussian.mu)) ** 2 // 1)
