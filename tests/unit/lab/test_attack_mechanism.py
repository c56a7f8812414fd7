"""`ragaudit attack mechanism`: broken mechanisms are refuted, sound ones are not."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ragaudit.circuits.selection import select
from ragaudit.encoding.errors import InvalidArgumentError, UnsupportedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.attacks.cli import app
from ragaudit.lab.attacks.mechanism import (
    SUBJECTS,
    AdvantageTester,
    Audit,
    PropertyTester,
    Verdict,
    audit,
    subject,
)
from ragaudit.lab.attacks.mechanism.auditing import test_by as judged_by
from ragaudit.lab.attacks.mechanism.subjects import (
    Claim,
    Documents,
    Retrieval,
    Terms,
    ThresholdAttack,
)
from ragaudit.lab.risk.estimation import proportion_low
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp
from scipy.stats import binom, norm
from typer.testing import CliRunner

BROKEN = ("noise-on-winners", "half-the-sigma", "seed-reuse", "observed-tokens")
# A true claim is refuted with at most this probability; 1,000 audits of one with 1 in 100.
ERROR = 1e-5
QUICK = Audit(trials=400, confidence=1 - ERROR, pairs=4)


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["mechanism", *arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_mechanism_is_refuted(name: str) -> None:
    found = audit(subject(name, Terms(rows=16)), QUICK)
    assert found.verdict is Verdict.REFUTED
    assert found.estimate.lower > found.allowed
    # The same in epsilons, at the delta that was fixed beforehand.
    assert found.comparisons[-1].certified > found.comparisons[-1].claimed


@pytest.mark.parametrize("name", sorted(set(SUBJECTS) - set(BROKEN)))
def test_a_sound_mechanism_is_not_refuted(name: str) -> None:
    found = audit(subject(name, Terms(rows=16)), QUICK)
    assert found.verdict is Verdict.NOT_REFUTED
    assert found.comparisons[-1].certified <= found.comparisons[-1].claimed


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(set(SUBJECTS) - set(BROKEN)))
def test_no_sound_mechanism_is_refuted_in_a_thousand_audits(name: str) -> None:
    how = [Audit(trials=50, confidence=1 - ERROR, pairs=1, seed=seed) for seed in range(1000)]
    found = [audit(subject(name, Terms("2", 8, seed=each.seed)), each) for each in how]
    assert {each.verdict for each in found} == {Verdict.NOT_REFUTED}
    # All trials together say the same more sharply; wrong with probability 1e-6.
    right = sum(each.successes for each in found)
    assert proportion_low(right, 50_000, 1 - 1e-6) - 0.5 <= found[0].allowed


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["retrieval", "voting"])
def test_two_thousand_audits_near_the_limit_are_wrong_as_rarely_as_they_say(name: str) -> None:
    """Of many rows half are selected: the best attack gains nearly what the claim allows."""
    how = [Audit(trials=100, confidence=0.95, pairs=1, seed=seed) for seed in range(2000)]
    terms = Terms(rows=64 if name == "retrieval" else 8)
    refuted = sum(audit(subject(name, terms), each).verdict is Verdict.REFUTED for each in how)
    # A sound audit fails this with probability 1e-6.
    assert refuted <= binom.isf(1e-6, len(how), 0.05)


def test_many_audits_say_how_often_the_claim_is_refuted() -> None:
    many = ("--trials", "50", "--pairs", "1", "--confidence", "0.99999", "--runs")
    found = json.loads(run("voting", *many, "8", "--json"))
    assert (found["verdict"], found["refuted"], found["runs"]) == ("NOT REFUTED", 0, 8)
    assert found["trials"] == 400 and found["chance"] == 1
    assert found == json.loads(run("voting", *many, "8", "--json"))
    found = json.loads(run("half-the-sigma", *many, "40", "--sigma", "4", "--json", code=1))
    # Fifty trials refute nothing so near, two thousand do.
    assert found["refuted"] == 0 and found["advantage_lower_bound"] > found["advantage_allowed"]
    shown = run("observed-tokens", *many, "8", code=1)
    assert "8 of 8 audits refuted the claim; if it is true" in shown


def test_the_attack_is_nearly_optimal() -> None:
    """Half of many rows selected: the boundary is nearly constant, and the claim nearly tight."""
    found = audit(subject("retrieval", Terms(rows=64)), Audit(trials=4000, pairs=1, seed=3))
    # mu = 2; the boundary's own spread takes about 1 % of the signal; six standard errors.
    best = norm.cdf(1) - 0.5
    assert abs(found.estimate.advantage - best) < 0.01 + 6 * np.sqrt(best * (1 - best) / 4000)


def test_the_certificate_is_equation_61() -> None:
    found = audit(subject("observed-tokens"), QUICK)
    lower = proportion_low(found.successes, 400, 1 - ERROR) - 0.5
    assert found.comparisons[0].certified == pytest.approx(
        np.log((1 + 2 * lower) / (1 - 2 * lower))
    )


def test_so_few_trials_cannot_refute_a_weak_claim() -> None:
    found = audit(subject("voting", Terms(epsilon=9)), QUICK)  # type: ignore[arg-type]
    assert found.verdict is Verdict.INCONCLUSIVE


def test_the_black_box_is_the_products_selection() -> None:
    class Watched(Retrieval):
        def __init__(self, terms: Terms) -> None:
            super().__init__(terms)
            self.seen: list[tuple[int, ...]] = []

        def noise(self, counter: int, rows: int) -> Any:
            drawn = super().noise(counter, rows)
            self.seen.append(select(drawn, rows // 2))
            return drawn

    watched = Watched(Terms(questions=3))
    # All scores are zero: what is selected is what the noise selects.
    samples = watched(Documents(np.tile([0.0, 1.0], (8, 1)), 0), 5)
    assert samples.sum() == sum(map(len, watched.seen))
    assert len(set(watched.seen)) > 1
    again = Retrieval(Terms(questions=3))(Documents(np.tile([0.0, 1.0], (8, 1)), 0), 5)
    assert (again == samples).all()


def test_more_questions_gain_more_within_their_claim() -> None:
    one, nine = (
        audit(subject("retrieval", Terms("4", 16, questions)), QUICK) for questions in (1, 9)
    )
    assert one.estimate.advantage < nine.estimate.advantage
    assert nine.allowed == pytest.approx(norm.cdf(3 / 4) - 0.5, abs=1e-4)


# --- the parts ---


def test_a_threshold_is_found_in_any_column_and_direction() -> None:
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=(500, 5)), rng.normal(size=(500, 5))
    two[:, 3] += 3
    fitted = ThresholdAttack.fit(one, two, None)
    assert (fitted.attack.column, fitted.attack.above) == (3, False)
    # 2 Phi(3/2) - 1 = .866.
    assert abs(fitted.gain - 0.866) < 0.08
    assert fitted.attack.names_first(one).mean() > 0.8 > 0.2 > fitted.attack.names_first(two).mean()


def test_a_gaussian_claim_is_compared_where_it_is_sharpest() -> None:
    claim = Claim(GaussianDp.of(1, NeighboringRelation.REPLACE))
    assert claim.allowed == pytest.approx(norm.cdf(0.5) - 0.5, abs=1e-9)
    small, sharpest = claim.deltas
    assert (small, claim.epsilon(sharpest)) == (1e-6, 0)
    assert sharpest == pytest.approx(2 * norm.cdf(0.5) - 1)
    # Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) = 1e-6.
    assert claim.epsilon(1e-6) == pytest.approx(4.886, abs=0.001)


def test_bad_input_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="no mechanism 'nothing'"):
        subject("nothing")
    with pytest.raises(InvalidArgumentError, match="trials: 10"):
        Audit(trials=10)
    tester = AdvantageTester(Claim(ApproximateDp.of(1, 0, NeighboringRelation.REPLACE)))
    with pytest.raises(InvalidArgumentError, match="as many of each"):
        tester.estimate_lower_bound(np.zeros((50, 1)), np.zeros((49, 1)), 0.01)
    with pytest.raises(InvalidArgumentError, match="training samples"):
        tester.estimate_lower_bound(np.zeros((30, 1)), np.zeros((30, 1)), 0.01)
    with pytest.raises(InvalidArgumentError, match="no number"):
        tester.estimate_lower_bound(np.full((90, 1), np.nan), np.zeros((90, 1)), 0.01)


# --- DP-Auditorium's interfaces ---

FOREIGN = '''
"""Objects as DP-Auditorium's are: they know nothing of ragaudit."""
from collections import Counter

import numpy as np

class Mean:
    """Adds too little noise: its sensitivity is 1, its scale of Laplace 1/4."""
    def __call__(self, dataset, num_samples):
        return dataset.mean() + np.random.default_rng(7).laplace(scale=0.25, size=num_samples)

class Pairs:
    def __init__(self):
        self.divergences = []
    def __call__(self, divergence):
        self.divergences.append(divergence)
        return np.array([0.0]), np.array([1.0])

class Tester:
    privacy_property = None
    def estimate_lower_bound(self, samples1, samples2, failure_probability):
        return abs(float(samples1.mean() - samples2.mean())) - failure_probability
    def reject_property(self, lower_bound):
        return lower_bound > 0.5

class OneSided:
    """As HockeyStickPropertyTester: sees one order of the worlds only, and names them so."""
    privacy_property = None
    def estimate_lower_bound(self, samples_1, samples_2, failure_probability):
        assert failure_probability < 0.001
        return float((samples_1 > 0.5).mean() - np.exp(1) * (samples_2 > 0.5).mean())
    def reject_property(self, lower_bound):
        return lower_bound > 0

class Counting:
    """As HistogramTester of discrete mechanisms: one number of each output, or it fails."""
    privacy_property = None
    def __init__(self, epsilon, delta):
        self.epsilon, self.delta = epsilon, delta
    def estimate_lower_bound(self, samples1, samples2, failure_probability):
        one, two = Counter(samples1), Counter(samples2)
        count, factor = len(samples1), np.exp(self.epsilon)
        beyond = sum(max(0, one[value] - factor * two[value]) for value in {*one, *two}) / count
        return beyond - (1 + factor) * np.sqrt(np.log(4 / failure_probability) / (2 * count))
    def reject_property(self, lower_bound):
        return lower_bound >= self.delta

class Likeliest:
    """As NoisyMaxMechanism: one position of each, and another name of the data set."""
    def __call__(self, data, num_samples):
        noise = np.random.default_rng(7).gumbel(scale=0.2, size=(num_samples, 2))
        return np.argmax(np.array([data.sum(), 0.5]) + noise, axis=1)

class Constant:
    """As ConstantDatasetGenerator: another name of the divergence."""
    def __call__(self, last_trial_result):
        return np.array([0.0]), np.array([1.0])

mean, pairs, tester, one_sided = Mean(), Pairs(), Tester(), OneSided()
likeliest, constant = Likeliest(), Constant()
votes, hits, no_hits = Counting(1, 0), Counting(0, 0.7), Counting(0, 0.01)

def attack(samples):
    return -samples

def blind(samples):
    return np.zeros(len(samples))
'''


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "foreign_auditors.py").write_text(FOREIGN, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "foreign_auditors", raising=False)
    return "foreign_auditors"


def test_foreign_mechanisms_generators_and_testers_plug_in(foreign: str) -> None:
    common = (f"{foreign}:mean", "--generator", f"{foreign}:pairs", "--claim-epsilon", "1")
    found = json.loads(run(*common, "--json", code=1))
    assert found["verdict"] == "CLAIM REFUTED"
    # Laplace of scale 1/4 and distance 1 is 4-DP: the certificate stays below.
    assert 1 < found["comparisons"][0]["certified"] <= 4
    assert "CLAIM REFUTED" in run(*common, "--tester", f"{foreign}:tester", code=1)
    # The second data set gives the large values: the first order alone shows nothing.
    assert "CLAIM REFUTED" in run(*common, "--tester", f"{foreign}:one_sided", code=1)
    given = run(*common, "--attack", f"{foreign}:attack", code=1)
    assert "first data set where the evidence about the changed record is above" in given
    assert "NOT REFUTED" in run(*common, "--attack", f"{foreign}:blind")
    assert "NOT REFUTED" in run("half-the-sigma", "--attack", f"{foreign}:blind")
    searching = sys.modules[foreign].pairs.divergences
    assert searching[0] is None and searching[1] > 0.5
    assert "NOT REFUTED" in run(*common[:-1], "8", "--trials", "40000")


def test_a_tester_that_counts_values_sees_one_number_of_each_output(foreign: str) -> None:
    """Two worlds differ in .683 at most under the claim of sigma 1, and in .954 at half of it."""
    few = ("--pairs", "1", "--trials", "400")
    votes, more = (*few, "--tester", f"{foreign}:votes"), (*few[:-1], "800", "--tester")
    assert "NOT REFUTED" in run("voting", *votes)
    assert "CLAIM REFUTED" in run("observed-tokens", *votes, code=1)
    assert "NOT REFUTED" in run("retrieval", *more, f"{foreign}:hits")
    assert "CLAIM REFUTED" in run("half-the-sigma", *more, f"{foreign}:hits", code=1)
    blind = ("half-the-sigma", *more, f"{foreign}:no_hits", "--attack", f"{foreign}:blind")
    assert "NOT REFUTED" in run(*blind)
    theirs = (f"{foreign}:likeliest", "--generator", f"{foreign}:constant", "--claim-epsilon", "1")
    assert "CLAIM REFUTED" in run(*theirs, *few, code=1)
    assert "CLAIM REFUTED" in run(*theirs, *votes, code=1)


def test_our_tester_is_one_of_theirs() -> None:
    claim = Claim(ApproximateDp.of(1, 0, NeighboringRelation.REPLACE))
    tester: PropertyTester = AdvantageTester(claim, seed=1)
    lower, rejected = judged_by(subject("observed-tokens"), tester, QUICK)
    assert rejected and lower > 1
    lower, rejected = judged_by(subject("voting"), tester, QUICK)
    assert not rejected and lower <= 1


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("nothing",), "no mechanism"),
        (("nothing:there",), "--generator and --claim-epsilon"),
        (("nothing:there", "--generator", "a:b", "--claim-epsilon", "1"), "cannot be loaded"),
        (("voting", "--tester", "json:nothing"), "--tester json:nothing: cannot be loaded"),
        (("voting", "--attack", "json:nothing"), "--attack json:nothing: cannot be loaded"),
        (("voting", "--tester", "json:loads", "--runs", "2"), "--tester: a tester is asked once"),
        (("voting", "--trials", "1"), "trials: 1"),
        (("retrieval", "--sigma", "0"), "sigma"),
        (("voting", "--epsilon", "none"), "epsilon"),
        (("voting", "--confidence", "1", "--trials", "50", "--pairs", "1"), "confidence"),
    ],
)
def test_the_command_refuses(
    arguments: tuple[str, ...], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        app(["mechanism", *arguments], standalone_mode=False)
    assert stopped.value.code == 2
    assert what in capsys.readouterr().err


def test_the_command_shows_certificate_and_claim() -> None:
    shown = run("half-the-sigma", "--trials", "500", "--pairs", "2", code=1)
    assert "claimed to be 2.0001-GDP, replace" in shown
    assert "CLAIM REFUTED (confidence 0.999): the attack gains more" in shown
    found = json.loads(run("voting", "--trials", "500", "--pairs", "1", "--json"))
    assert found["verdict"] == "NOT REFUTED" and found["confidence"] == 0.999
    assert found["comparisons"] == [
        {"delta": 0.0, "claimed_epsilon": 1.0, "certified": found["comparisons"][0]["certified"]}
    ]
