"""Figures 8 and 9: the model-based estimate and the certified bound beside LDP-Auditor's value."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from ragaudit.lab.reproduce.rad_audits import ALPHA, REPEATS, UNIVERSES, Audit
from ragaudit.lab.risk.comparators import ldp_auditor_epsilon

__all__ = ["Rivals", "Statement", "as_text", "rivals", "statements"]

CAPS = {10**6: ("about 12.25", "12.025")}
"""LDP-Auditor's largest value by runs, as printed and corrected."""

HEADER = (
    "mechanism  true epsilon  from its formula  certified  LDP-Auditor  nearer than LDP-Auditor"
)
NOTES = """Means over the repetitions; of what is infinite in some of them, the mean is infinite.
From its formula: the mechanism is presumed, no certificate. Certified and LDP-Auditor: lower
confidence bounds, each repetition for itself. Nearer: repetitions in which the estimate from the
formula is nearer to the true epsilon than LDP-Auditor's value; an infinite estimate never is.
The paper prints no digits in these figures."""


@dataclass(frozen=True, slots=True)
class Rivals:
    """One audit, the means over its repetitions.

    Attributes:
        universe, records, kind, epsilon, runs: of the audit.
        model_based: mean estimate from the mechanism's formula; inf if one is infinite.
        infinite: how many are.
        certified: mean lower bound.
        ldp_auditor: mean of LDP-Auditor's values; -inf if one is.
        nearer: repetitions whose model-based estimate is nearer to the truth than LDP-Auditor's.
    """

    universe: str
    records: int
    kind: str
    epsilon: float
    runs: int
    model_based: float
    infinite: int
    certified: float
    ldp_auditor: float
    nearer: int


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of the paper, as printed, corrected where it can be, and as found."""

    quantity: str
    paper: str
    corrected: str
    ours: str


def rivals(audits: Sequence[Audit]) -> tuple[Rivals, ...]:
    """Return the means over the repeats of each audit."""
    return tuple(map(_means, audits))


def statements(audits: Sequence[Audit]) -> tuple[Statement, ...]:
    """Return what section 7.3.4 says of LDP-Auditor, as printed, corrected and found.

    Args:
        audits: all of one number of runs.
    """
    found, runs = rivals(audits), audits[0].runs
    by_mean = sum(_nearer(each.model_based, each.ldp_auditor, each.epsilon) for each in found)
    certified = sum(_nearer(each.certified, each.ldp_auditor, each.epsilon) for each in found)
    repetitions = f"{sum(each.nearer for each in found)} of {REPEATS * len(found)}"
    last = max(audit.epsilon for audit in audits)
    printed, _ = CAPS.get(runs, ("", ""))
    return (
        Statement("estimate from the formula nearer to the truth than LDP-Auditor: audits, by mean",
                  "all", "", f"{by_mean} of {len(found)}"),
        Statement("the same, single repetitions", "", "", repetitions),
        Statement("certified bound nearer to the truth than LDP-Auditor: audits, by mean",
                  "", "", f"{certified} of {len(found)}"),
        *(
            Statement(f"largest value that LDP-Auditor can report, {count:,} runs", paper,
                      corrected, _shown(_cap(count)))
            for count, (paper, corrected) in {runs: ("", ""), **CAPS}.items()
        ),
        *(
            Statement(f"largest that it reports of {kind} at epsilon {last:g}, {runs:,} runs",
                      printed if kind != "OUE" else "", "",
                      _shown(_largest(audits, kind, last)))
            for kind in dict.fromkeys(audit.kind for audit in audits)
        ),
    )  # fmt: skip


def as_text(audits: Sequence[Audit]) -> str:
    """Return a table for each universe, then the paper's statements."""
    found = rivals(audits)
    blocks = ["Audits against LDP-Auditor (Figures 8 and 9)"]
    for universe, records in UNIVERSES.items():
        rows = [each for each in found if each.records == records]
        title = f"{records:,} synthetic records (for {universe}), {audits[0].runs:,} runs"
        blocks.append("\n".join([f"{title}, {REPEATS} times", HEADER, *map(_line, rows)]))
    lines = [_cells("", "paper", "corrected", "ours")]
    lines += [
        _cells(each.quantity, each.paper, each.corrected, each.ours) for each in statements(audits)
    ]
    return "\n\n".join([*blocks, "\n".join(lines), NOTES]) + "\n"


def _means(audit: Audit) -> Rivals:
    pairs = zip(audit.estimates, audit.ldp_auditor, strict=True)
    return Rivals(
        audit.universe, audit.records, audit.kind, audit.epsilon, audit.runs,
        float(np.mean(audit.estimates)), sum(map(math.isinf, audit.estimates)),
        float(np.mean(audit.certified)), float(np.mean(audit.ldp_auditor)),
        sum(_nearer(estimate, rival, audit.epsilon) for estimate, rival in pairs),
    )  # fmt: skip


def _nearer(value: float, rival: float, truth: float) -> bool:
    return abs(value - truth) < abs(rival - truth)


def _cap(runs: int) -> float:
    """LDP-Auditor's value with as many successes as runs and no false positive."""
    return ldp_auditor_epsilon(runs, 0, runs, ALPHA)


def _largest(audits: Sequence[Audit], kind: str, epsilon: float) -> float:
    chosen = (audit for audit in audits if (audit.kind, audit.epsilon) == (kind, epsilon))
    return max(value for audit in chosen for value in audit.ldp_auditor)


def _line(each: Rivals) -> str:
    estimate = _shown(each.model_based)
    if each.infinite:
        estimate = f"inf ({each.infinite} of {REPEATS})"
    return (
        f"{each.kind:9}  {each.epsilon:12g}  {estimate:>16}  {_shown(each.certified):>9}  "
        f"{_shown(each.ldp_auditor):>11}  {each.nearer} of {REPEATS}"
    )


def _cells(quantity: str, paper: str, corrected: str, ours: str) -> str:
    return f"{quantity:81}  {paper:11}  {corrected:9}  {ours}".rstrip()


def _shown(value: float) -> str:
    return f"{value:.3f}"
