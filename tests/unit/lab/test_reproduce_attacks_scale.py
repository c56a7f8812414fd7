"""The experiments at scale and on the estimator: laws, patterns, small runs of both figures."""

from pathlib import Path

import numpy as np
import pytest
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.circuits.sketch import sketches
from ragaudit.encoding.errors import RefusedError
from ragaudit.lab.reproduce import attacks_coalition, attacks_scale
from ragaudit.lab.reproduce.attacks_coalition import (
    BITS,
    CORRECTED_JITTER,
    PATTERNS,
    SEED,
    false_positive_rate,
    figure_7,
    joined,
    link,
    nearest,
    queries,
)
from ragaudit.lab.reproduce.attacks_results import Run, document, text
from ragaudit.lab.reproduce.attacks_scalar import sigma_of
from ragaudit.lab.reproduce.attacks_scale import SEARCHING, BestScores, Graph, figure_6, share_found
from ragaudit.lab.reproduce.attacks_texts import FOLDER, glosses
from ragaudit.lab.reproduce.attacks_top_k import hit_probability, hit_probability_at_scale

QUICK = Run(5, quick=True)
needs_wordnet = pytest.mark.skipif(not FOLDER.is_dir(), reason="wordnet-base is not installed")


def test_the_law_at_scale_is_the_law() -> None:
    """2,000 rows, by Poisson and by the exact sum; and what is known at a million equal scores."""
    exact = np.random.default_rng(1).integers(-3000, 3000, size=2000)
    for own, sigma in ((16_000, 28.9), (16_000, 2.0), (0, 2.0)):
        direct = hit_probability(np.append(exact, own), 2000, 5, sigma)
        scaled = hit_probability_at_scale(exact, own, 5, sigma)
        assert scaled == pytest.approx(direct, rel=5e-3)
    million = np.zeros(999_999, dtype=np.int64)
    assert hit_probability_at_scale(million, 0, 5, 1.0) == pytest.approx(5e-6, rel=1e-3)
    # The recomputed value of the paper's cell, at a gap of 1 from background scores of 0.
    with_row = hit_probability_at_scale(million, 16_129, 5, sigma_of("16", 200))
    assert with_row == pytest.approx(5.86e-6, rel=0.02)


def test_false_alarms_of_random_directions() -> None:
    rates = [false_positive_rate(theta) for theta in (0.70, 0.75, 0.80, 0.85)]
    assert rates == pytest.approx([1.0, 0.6665, 0.0492, 0.0008], abs=1e-4)


@pytest.mark.parametrize("pattern", [None, *PATTERNS, CORRECTED_JITTER])
def test_patterns(pattern: str | None) -> None:
    made = queries(np.random.default_rng(2), pattern, 4)
    assert np.linalg.norm(made, axis=-1) == pytest.approx(1)
    cosines = made[0] @ made[1].T
    least = {"P-A": 1, "P-C": 1, "P-B": 0.7, CORRECTED_JITTER: 0.97}.get(str(pattern))
    if least is None:
        assert cosines.max() < 0.9
    else:
        best = np.median(cosines.max(axis=0))
        assert best >= least - 1e-9
    # Who does not belong follows no pattern.
    assert (made[4] @ made[5].T).max() < 0.9


def test_the_nearest_questions_of_two_accounts() -> None:
    made = queries(np.random.default_rng(3), "P-C", 2)[:6, :20].astype(np.float32)
    found = nearest(made)
    for one in range(6):
        for other in range(6):
            best = max(float(a @ b) for a in made[one] for b in made[other])
            assert found[one, other] == pytest.approx(best, abs=1e-6)


def test_questions_only_add_links() -> None:
    """So groups of some of the questions may be completed: only who is outside is compared."""
    rows = quantise_rows(queries(np.random.default_rng(4), None, 0).reshape(-1, 32))
    asked = sketches(rows.astype(np.int16), SEED, BITS)
    owners = np.repeat(np.arange(30), 100)
    groups, sizes = np.arange(30), []
    for count in (1, 20, 50, 100):
        own = np.arange(len(owners)) % 100 < count
        groups = joined(asked[own], owners[own], "0.7", groups)
        assert groups.tolist() == link(asked[own], owners[own], "0.7").tolist()
        sizes.append(int(np.bincount(groups).max()))
    assert 1 == sizes[0] < sizes[1] < sizes[2] < sizes[3]


def test_glosses_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="WordNet"):
        glosses(3, tmp_path)
    line = "00001740 03 n 01 entity 0 000 | that which is  \n"
    (tmp_path / "data.noun").write_text("  1 licence\n" + line + line, encoding="ascii")
    assert glosses(1, tmp_path) == ["that which is"]


def test_how_much_of_the_best_rows_is_found() -> None:
    """Half of the list of one question and all of the other's, of which the last two tie."""
    best = np.array([[9, 8, 7, 6], [5, 4, 3, 3]], dtype=np.float32)
    found = np.array([[9, 7, 5, 4], [5, 4, 3, 3]], dtype=np.float32)
    share = share_found(found, best, 4)
    # Standard deviation of .5 and 1 is sqrt(1/8), its error a quarter.
    assert share == pytest.approx((0.75, 0.25, 0.75 - 1.96 * 0.25, 1), abs=1e-3)
    # Of a shorter list, what counts is who is in it: 7 is no best one of two.
    assert share_found(found, best, 2).mean == 0.75


def test_the_best_scores_of_blocks_are_those_of_all_rows() -> None:
    pytest.importorskip("faiss")
    random = np.random.default_rng(6)
    rows = quantise_rows(random.standard_normal((900, 16)))
    asked = quantise_rows(random.standard_normal((30, 16))).astype(np.int16)
    best, graph = BestScores(asked, SEARCHING - 1), Graph(16)
    for block in np.split(rows, 3):
        best.add(block)
        graph.add(block)
    exact = np.sort(asked.astype(np.int64) @ rows.astype(np.int64).T, axis=1)[:, ::-1]
    assert (best.descending() == exact[:, : SEARCHING - 1]).all()
    found, places = graph.search(asked, SEARCHING - 1)
    # What the graph says of its rows are their scores, and it misses little of so few.
    true = np.take_along_axis(asked.astype(np.int64) @ rows.astype(np.int64).T, places, axis=1)
    assert (found == true).all()
    assert share_found(found, best.descending(), 5).mean > 0.95


@pytest.mark.slow
@needs_wordnet
def test_a_small_figure_6(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some thousand rows: every cell within five standard errors of its law, drawn or not."""
    monkeypatch.setattr(attacks_scale, "ROWS", 60_000)
    monkeypatch.setattr(attacks_scale, "GLOSSES", 40_000)
    result = figure_6(QUICK)
    assert not result.table.disagreements
    assert text([result]) and document([result], {})
    areas = {(each.curve, each.epsilon_acc, each.accounts): each.theory for each in result.points}
    whole = areas[attacks_scale.ALL, "16", 20]
    listed = areas["hits, noise on the 128 best rows", "16", 20]
    assert whole is not None and listed is not None and whole < 0.51 < listed
    graph = areas.get(("hits, noise on the 128 of HNSW", "16", 20))
    if graph is None:
        return
    assert graph == pytest.approx(listed, abs=0.01)
    shares = [each for each in result.findings if each.name.endswith("for other questions")]
    assert [each.value > 0.9 and each.error < 0.05 for each in shares] == [True, True]


@pytest.mark.slow
@needs_wordnet
def test_a_small_figure_7(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attacks_coalition, "TRUE", (2, 10))
    monkeypatch.setattr(attacks_coalition, "SIZES", ((10, 10), (30, 100)))
    result = figure_7(QUICK)
    assert not result.table.disagreements
    values = {each.name: each.value for each in result.findings}
    for pattern in PATTERNS:
        assert values[f"{pattern}, k = 10, theta 0.80: detected"] == 1
    few = values["honest accounts linked, WordLlama, A = 10, n = 10, theta 0.8"]
    many = values["honest accounts linked, WordLlama, A = 30, n = 100, theta 0.8"]
    assert few <= many
    assert set(result.files()) == {
        f"attacks-7-{name}.{kind}"
        for name in ("false-alarms", "estimates")
        for kind in ("png", "svg")
    }
