"""How coalitions evade an estimator, what each estimator sees, and what evading costs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from ragaudit.lab.reproduce.attacks_evasion_estimators import (
    DIRECTION,
    ESTIMATORS,
    PLANNED,
    POLICY,
    Index,
    k_hat,
)
from ragaudit.lab.reproduce.attacks_evasion_plots import figures
from ragaudit.lab.reproduce.attacks_evasion_traffic import (
    ACCOUNTS,
    ARMS,
    BITS,
    COALITION,
    HONEST,
    QUESTIONS,
    WINDOWS,
    Arm,
    pool,
    traffic,
)
from ragaudit.lab.reproduce.attacks_results import Finding, Gate, Point, Result, Run, point
from ragaudit.lab.reproduce.attacks_results import comparisons as compared
from ragaudit.lab.reproduce.attacks_scalar import coalition_mu
from ragaudit.lab.reproduce.comparison import Table
from ragaudit.privacy.coalition import hamming_threshold
from scipy import stats

__all__ = ["Seen", "evasion", "hard_to_evade", "threshold"]

TEXTS, ROWS = 20_000, 500
EPSILON = "4"
CALIBRATION, ALONE, TRIALS, DRAWS = 20, 8, 4, 5000
THETA = "0.9"
AMONG = (HONEST[0], HONEST[2])
"""The honest accounts that coalitions hide among."""
KEEPS = COALITION / 2
"""An arm that keeps so much is worth detecting: half of the information."""

_NAMES = [each.name for each in ESTIMATORS]


@dataclass(frozen=True, slots=True)
class Seen:
    """What one trial shows: a score by estimator, the policy's k-hat, what the arm is worth."""

    scores: Mapping[str, float]
    linked: int
    worth: float


def evasion(run: Run) -> Result:
    """Return what every estimator sees of every arm, beside the signal that the arm keeps.

    Args:
        run: with `quick`, one trial of two arms, the same probe and the staggered one.

    Raises:
        RefusedError: WordNet's glosses are not installed.
        EmbedderUnavailable: WordLlama is not installed.
    """
    arms = ARMS[::9] if run.quick else ARMS
    trials = 1 if run.quick else TRIALS
    honest = {kind: _share(run, CALIBRATION if kind in AMONG else ALONE) for kind in HONEST}
    steps = sum(honest.values()) + len(AMONG) * len(arms) * trials
    done = 0

    def trial(kind: str, arm: Arm | None, number: int) -> Seen:
        nonlocal done
        place = 0 if arm is None else 1 + ARMS.index(arm)
        found = _trial(run.generator(8, HONEST.index(kind), place, number), kind, arm)
        done += 1
        run.progress("Evasion", done, steps)
        return found

    run.progress("Evasion", 0, steps)
    alone = {kind: [trial(kind, None, n) for n in range(count)] for kind, count in honest.items()}
    levels = {kind: {name: threshold(alone[kind], name) for name in _NAMES} for kind in AMONG}
    seen = {
        (kind, arm.name): [trial(kind, arm, n) for n in range(trials)]
        for kind in AMONG for arm in arms
    }  # fmt: skip
    rates = {
        (*key, name): float(np.mean([each.scores[name] > levels[key[0]][name] for each in own]))
        for key, own in seen.items()
        for name in _NAMES
    }
    points = [_area(run, arm, seen[AMONG[0], arm.name]) for arm in arms]
    found = [*_honest(alone), *_detected(seen, rates)]
    title = f"Evasion: {COALITION} of {ACCOUNTS} accounts, k_max = {PLANNED}"
    table = Table(
        "attacks-evasion", title, "section 7.1, left open there", compared(points),
        ("An arm's area is by the law of the pooled mean with the best weights; the noise is that "
         f"of eps_acc = {EPSILON}, the same for all arms.",),
    )  # fmt: skip
    return Result(
        "evasion", table, tuple(points), tuple(found),
        tuple(_gate(name, seen, rates) for name in _NAMES),
        (
            f"Thresholds: the largest value of {honest[AMONG[0]]} honest trials of the same kind, "
            f"so an alarm is false in at most one of {honest[AMONG[0]] + 1}.",
            "`alike within tau` and other estimators that link accounts have the best threshold in "
            "hindsight. True scores and private receipts of all accounts are granted to those that "
            "need them; V has neither.",
            f"`{DIRECTION}` gave less than the arm is worth, rounded down, in {_below(seen)} of "
            f"{sum(map(len, seen.values()))} trials.",
        ),
        lambda: figures(points, seen, rates, _NAMES, AMONG),
        _table(seen, rates),
    )  # fmt: skip


def _share(run: Run, full: int) -> int:
    return 2 if run.quick else full


def _trial(random: np.random.Generator, kind: str, arm: Arm | None) -> Seen:
    texts = pool(TEXTS)
    records = traffic(random, texts, kind, arm)
    sigma = math.sqrt(COALITION * WINDOWS * QUESTIONS) / coalition_mu(
        EPSILON, COALITION, exact=False
    )
    index = Index(texts[:ROWS].astype(np.float32), sigma)
    limit = hamming_threshold(THETA, BITS)
    return Seen(
        {each.name: each.score(records, index, random) for each in ESTIMATORS},
        max(k_hat(records, window, limit) for window in range(WINDOWS)), records.worth,
    )  # fmt: skip


def threshold(honest: list[Seen], name: str) -> float:
    """Return the largest score of honest trials: one more exceeds it once in their number + 1.

    Args:
        honest: trials of one kind, exchangeable.
        name: of the estimator.
    """
    return max(each.scores[name] for each in honest)


def _area(run: Run, arm: Arm, own: list[Seen]) -> Point:
    """The attack's area with what the arm keeps of the signal."""
    kept = float(np.mean([each.worth for each in own])) / COALITION
    mu = coalition_mu(EPSILON, COALITION, exact=False) * math.sqrt(kept)
    draws = run.generator(8, 9, ARMS.index(arm)).standard_normal((2, run.trials(DRAWS)))
    plain = arm == ARMS[0]
    return point(
        arm.name, EPSILON, COALITION, draws[1] + mu, draws[0],
        theory=float(stats.norm.cdf(mu / math.sqrt(2))), paper="0.638" if plain else None,
    )  # fmt: skip


def _honest(alone: Mapping[str, list[Seen]]) -> list[Finding]:
    found = []
    for kind, own in alone.items():
        for name, values in (
            (f"{POLICY}, theta {THETA}", [each.linked for each in own]),
            (DIRECTION, [each.scores[DIRECTION] for each in own]),
        ):
            found.append(
                Finding(
                    f"honest, {kind}: k-hat, {name}", float(np.mean(values)),
                    reason=f"at most {max(values):g} in {len(own)} trials",
                )
            )  # fmt: skip
    return found


def _detected(
    seen: Mapping[tuple[str, str], list[Seen]], rates: Mapping[tuple[str, str, str], float]
) -> list[Finding]:
    found = []
    for (kind, arm), own in seen.items():
        found.append(Finding(f"{arm}, among {kind}: worth", _mean_worth(own)))
        found.append(Finding(f"{arm}, among {kind}: k-hat, {DIRECTION}", _mean(own)))
        found += [
            Finding(f"{arm}, among {kind}: detected, {name}", rates[kind, arm, name])
            for name in _NAMES
        ]
    return found


def _below(seen: Mapping[tuple[str, str], list[Seen]]) -> int:
    trials = [each for own in seen.values() for each in own]
    return sum(each.scores[DIRECTION] < math.floor(each.worth) for each in trials)


def _mean_worth(own: list[Seen]) -> float:
    return float(np.mean([each.worth for each in own]))


def _mean(own: list[Seen]) -> float:
    return float(np.mean([each.scores[DIRECTION] for each in own]))


def _gate(
    name: str,
    seen: Mapping[tuple[str, str], list[Seen]],
    rates: Mapping[tuple[str, str, str], float],
) -> Gate:
    strong = [key for key, own in seen.items() if _mean_worth(own) >= KEEPS - 0.5]
    caught = sum(rates[(*key, name)] * len(seen[key]) for key in strong)
    total = sum(len(seen[key]) for key in strong)
    return Gate(
        f"hard to evade: {name}",
        f"detects nine in ten coalitions that keep half of what {COALITION} accounts learn",
        hard_to_evade(round(caught), total),
        f"{caught:.0f} of {total} trials of {len(strong)} cells",
        "PASS and FAIL are each wrong in at most 5 % of runs, over a coalition drawn like these.",
    )  # fmt: skip


def hard_to_evade(caught: int, total: int) -> str:
    """Return whether nine in ten are detected: one-sided and exact (Clopper and Pearson 1934).

    Args:
        caught: of the trials.
        total: trials.
    """
    low = float(stats.beta.ppf(0.05, caught, total - caught + 1)) if caught else 0.0
    high = float(stats.beta.ppf(0.95, caught + 1, total - caught)) if caught < total else 1.0
    return "PASS" if low >= 0.9 else "FAIL" if high < 0.9 else "UNDECIDED"


def _table(
    seen: Mapping[tuple[str, str], list[Seen]], rates: Mapping[tuple[str, str, str], float]
) -> str:
    """Detection by arm and estimator, as text."""
    numbered = [f"  ({number}) {name}" for number, name in enumerate(_NAMES, 1)]
    width = max(len(arm.name) for arm in ARMS)
    head = f"{'share of trials detected':{width}}  worth  k-hat(6)" + "".join(
        f"{f'({number})':>6}" for number in range(1, len(_NAMES) + 1)
    )
    lines = [*numbered]
    for kind in AMONG:
        lines += ["", f"among accounts that ask: {kind}", head]
        for (place, arm), own in seen.items():
            if place == kind:
                cells = "".join(f"{rates[kind, arm, name]:6.2f}" for name in _NAMES)
                lines.append(f"{arm:{width}}  {_mean_worth(own):5.1f}  {_mean(own):8.1f}{cells}")
    return "\n".join(lines)
