"""How our own code gives each kind of entry of tests/vectors/dp_oracle.json."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.risk import calibration, estimation, general_bounds, mechanisms
from ragaudit.lab.risk.continuous import continuous_advantage
from ragaudit.lab.risk.general_bounds import (
    Knowledge,
    Scenario,
    approximate_dp_terms,
    best_bound,
    channel_bounds,
    exact_guess_knapsack,
    trade_off_forms,
    uniform_exact_guess_value,
)
from ragaudit.lab.risk.mechanisms import (
    ExponentialMechanism,
    GaussianNoise,
    LaplaceNoise,
    channel_total_variation,
    finite_advantage,
)
from ragaudit.lab.risk.one_dimensional import line_advantage
from ragaudit.lab.risk.threat import (
    AuxiliaryKnowledge,
    ContinuousPrior,
    FinitePrior,
    SuccessSets,
    ThreatModel,
)
from ragaudit.lab.risk.trade_off import (
    ApproximateTradeOff,
    GaussianTradeOff,
    TradeOff,
    approximate_total_variation,
    composed_total_variation,
    gaussian_total_variation,
)
from ragaudit.privacy.accounting.risk import PriorSummary
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp, TotalVariation
from ragaudit.privacy.mechanisms.dp_ksa import DpKsa
from ragaudit.privacy.mechanisms.streams import Bin, DocumentBudgets, MuragAda

Entry = dict[str, Any]
Inputs = dict[str, Any]


def finite_prior(i: Inputs, records: int) -> FinitePrior:
    return FinitePrior.uniform(records) if i["prior"] == "uniform" else FinitePrior(i["prior"])


def threat_of(i: Inputs, positions: np.ndarray) -> ThreatModel:
    m = len(positions)
    known = {"none": AuxiliaryKnowledge.none, "full": AuxiliaryKnowledge.full}
    auxiliary = (
        known[i["aux"]](m) if isinstance(i["aux"], str) else AuxiliaryKnowledge.of_labels(i["aux"])
    )
    return ThreatModel(finite_prior(i, m), SuccessSets.on_line(positions, i["eta"]), auxiliary)


def channel_of(i: Inputs) -> np.ndarray:
    if i["mechanism"] == "grr":
        return mechanisms.grr_channel(i["m"], i["eps"])
    if i["mechanism"] == "oue":
        return mechanisms.oue_channel(i["m"], i["eps"])
    return mechanisms.ss_channel(i["m"], i["eps"], i["omega"])


def enumerated(i: Inputs) -> float:
    """Theorem 4.3 by enumeration; where a closed form covers the case it must agree."""
    threat = threat_of(i, np.arange(i["m"]))
    value = finite_advantage(channel_of(i), threat)
    closed: dict[str, Callable[[], float]] = {
        "grr": lambda: mechanisms.grr_advantage(threat, i["eps"]),
        "oue": lambda: mechanisms.oue_advantage(threat, i["eps"]),
        "ss": lambda: mechanisms.ss_advantage(threat, i["eps"], i["omega"]),
    }
    if isinstance(i["aux"], str):
        assert closed[i["mechanism"]]() == pytest.approx(value, abs=1e-12)
    return value


def noise_of(i: Inputs) -> LaplaceNoise | GaussianNoise:
    if i["mechanism"] == "laplace":
        return LaplaceNoise.calibrated(i["eps"], i["sensitivity"])
    return GaussianNoise(i["sigma"])


def on_line(i: Inputs) -> float:
    """Theorem 4.3 by quadrature; the uniform prior's closed form must agree."""
    records = i.get("records", "equispaced on [0,1]")
    if records == "equispaced on [0,1]":
        positions = np.linspace(0, 1, i["m"])
    elif records == "0..100":
        positions = np.arange(101.0)
    else:
        positions = np.array(records, dtype=float)
    threat = threat_of(i, positions)
    clamp = (0.0, 100.0) if "clamped" in i.get("output", "") else None
    found = line_advantage(positions, noise_of(i), threat, clamp=clamp)
    assert found.error < 1e-10
    if threat.prior.is_uniform and threat.success.is_exact and threat.auxiliary.is_none:
        closed = mechanisms.noise_advantage_uniform(positions, noise_of(i))
        assert closed == pytest.approx(found.value, abs=1e-12)
    return found.value


def continuous(i: Inputs) -> float:
    if "eta" not in i:
        return ExponentialMechanism(i["eps"]).largest_density
    law = (
        ContinuousPrior.uniform(0, 1) if i["prior"] == "uniform" else ContinuousPrior.beta(0.1, 0.1)
    )
    mechanism = ExponentialMechanism(i["eps"]) if i["mechanism"] == "exponential" else noise_of(i)
    return continuous_advantage(law, mechanism, i["eta"]).value


def trade_off_theorem(i: Inputs) -> float:
    curve: TradeOff = (
        GaussianTradeOff(i["mu"]) if i["f"] == "gdp" else ApproximateTradeOff(i["eps"], i["delta"])
    )
    summary = PriorSummary.of(i.get("kappa_pi", 0.0), i["kappa_minus"], i["kappa_plus"])
    first, second = trade_off_forms(summary, curve)
    return {"first": first, "discrete": second, "min of both": min(first, second)}[i["form"]]


def total_variation(i: Inputs) -> float:
    if "tv" in i:
        return composed_total_variation(i["tv"], i["T"])
    if "mu" in i:
        return gaussian_total_variation(i["mu"])
    if "delta" in i:
        return approximate_total_variation(i["eps"], i["delta"])
    if i["mechanism"] == "laplace":
        return LaplaceNoise.calibrated(i["eps"], 1.0).total_variation(1.0)
    found = channel_total_variation(channel_of(i))
    closed = (
        mechanisms.grr_total_variation(i["m"], i["eps"])
        if i["mechanism"] == "grr"
        else mechanisms.ss_total_variation(i["m"], i["eps"], i["omega"])
    )
    assert closed == pytest.approx(found, abs=1e-12)
    return found


def knapsack(i: Inputs) -> Entry | float:
    prior = np.array(i["prior"])
    if i.get("support_only"):
        return exact_guess_knapsack(prior[prior > 0], i["eps"], i["delta"]).value
    value, full, remainder = exact_guess_knapsack(prior, i["eps"], i["delta"])
    return {"bound": value, "K": full, "R": remainder}


def proposition(i: Inputs) -> Entry:
    summary = PriorSummary.of(i["kappa_pi"], i["kappa_minus"], i["kappa_plus"])
    terms = approximate_dp_terms(summary, i["eps"], i["delta"], tightened=False)
    assert min(approximate_dp_terms(summary, i["eps"], i["delta"])) <= min(terms)
    return {"terms": list(terms), "bound": min(terms)}


def success(i: Inputs) -> float:
    if i["bound"] == "Eq1":
        return general_bounds.pure_dp_success(i["kappa_plus"], i["eps"])
    curve: TradeOff = (
        GaussianTradeOff(i["mu"]) if i["f"] == "gdp" else ApproximateTradeOff(i["eps"], i["delta"])
    )
    return general_bounds.trade_off_success(i["kappa_plus"], curve)


def inverse(i: Inputs) -> float:
    if i.get("bound") == "thm4.2":
        return calibration.total_variation_epsilon(i["rad"], i["kappa_pi"], i["delta"])
    m = i["m"]
    if i["mechanism"] == "laplace":
        assert calibration.laplace_scale(i["rad"], m, 1.0) == pytest.approx(
            1 / calibration.laplace_epsilon(i["rad"], m)
        )
        return calibration.laplace_epsilon(i["rad"], m)
    if i["mechanism"] == "gaussian":
        return calibration.gaussian_scale(i["rad"], m, i["sensitivity"])
    if i["mechanism"] == "grr":
        return calibration.grr_epsilon(i["rad"], m, 1 / m)
    if i["mechanism"] == "ss":
        return calibration.ss_epsilon(i["rad"], m, i["omega"])
    return calibration.largest_parameter(
        lambda eps: mechanisms.oue_advantage_uniform(m, eps), i["rad"]
    ).parameter


def gradient_noise(i: Inputs) -> float:
    """sigma of full-batch DP-SGD from the largest mu that keeps the target."""
    m, factor = i["m"], {"add_remove": 1, "replace_one": 2}[i["adjacency"]]
    summary = PriorSummary.uniform(m)
    if i["bound"] == "thm4.2":
        mu = calibration.largest_parameter(
            lambda mu: gaussian_total_variation(mu) * (1 - 1 / m), i["rad"]
        ).parameter
    elif "first" in i["bound"]:
        mu = calibration.largest_parameter(
            lambda mu: trade_off_forms(summary, GaussianTradeOff(mu))[0], i["rad"]
        ).parameter
    else:
        mu = calibration.largest_mu(i["rad"], summary).parameter
    return factor * math.sqrt(i["T"]) / mu


def crossing(i: Inputs) -> float:
    """Where Laplace noise on m equal gaps becomes worse than optimal unary encoding."""
    m = i["m"]

    def difference(eps: float) -> float:
        noise = LaplaceNoise(1 / eps) if eps else LaplaceNoise(1e300)
        return mechanisms.noise_bound_uniform(m, 1.0, noise) - mechanisms.oue_advantage_uniform(
            m, eps
        )

    low, high = 10.0, 20.0
    assert difference(low) < 0 < difference(high)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if difference(middle) < 0 else (low, middle)
    return low


def worst_prior(i: Inputs) -> Entry:
    positions, noise = np.linspace(0, 1, i["m"]), LaplaceNoise(1 / i["eps"])
    ends = np.zeros(i["m"])
    ends[[0, -1]] = 0.5
    two = ThreatModel.reconstruction(FinitePrior(ends))
    uniform = ThreatModel.reconstruction(FinitePrior.uniform(i["m"]))
    return {
        "two_extremes": line_advantage(positions, noise, two).value,
        "uniform_prior": line_advantage(positions, noise, uniform).value,
    }


def table(i: Inputs) -> Entry:
    """A row of Table 1: what applies, from best_bound itself."""
    names = {
        "Theorem 4.2": "thm4.2", "Theorem 5.1": "thm5.1 with f_eps_delta",
        "Proposition 5.3": "prop5.3", "Theorem 5.5": "thm5.5", "Corollary 5.6": "cor5.6 if uniform",
    }  # fmt: skip
    knowledge = i["knowledge"]
    replace = NeighboringRelation.REPLACE
    scenario = Scenario.uniform(4, Knowledge.NONE if i["aux"] == "none" else Knowledge.ANY)
    success_bound: str | None = None
    if knowledge == "full mechanism":
        threat = ThreatModel.membership(FinitePrior.uniform(4))
        found = channel_bounds(mechanisms.grr_channel(4, 1.0), threat, "GRR")
        assert [bound.theorem for bound in found] == ["Theorem 4.3", "Theorem 4.2"]
        applicable = ["thm4.3", "thm4.2 via exact TV"]
        composes = found[0].composes
    else:
        guarantee = {
            "total variation": TotalVariation.of(0.25, replace),
            "(eps,delta)": ApproximateDp.of(1.0, 1e-5, replace),
            "f-DP": GaussianDp.of(1.0, replace),
        }[knowledge]
        if i["aux"] == "none":
            prior = FinitePrior.uniform(4)
            scenario = Scenario.of_threat(ThreatModel.reconstruction(prior))
            with pytest.raises(ValueError, match="delta"):
                general_bounds.pure_dp_success_bound(scenario, guarantee)  # type: ignore[arg-type]
            eq3 = general_bounds.trade_off_success_bound(scenario, guarantee)  # type: ignore[arg-type]
            assert eq3.equation == "Eq. (3)"
            success_bound = "Eq3 with f_eps_delta (Eq1 only if delta=0)"
        else:
            with pytest.raises(ValueError, match="knowledge"):
                general_bounds.trade_off_success_bound(scenario, guarantee)  # type: ignore[arg-type]
        best = best_bound(scenario, [guarantee])  # type: ignore[list-item]
        applicable = [
            names[theorem]
            for theorem in names
            if theorem in {bound.theorem for bound in best.applicable}
        ]
        if knowledge == "f-DP":
            applicable = [name + " via TV of f" for name in applicable]
        composes = all(bound.composes for bound in best.applicable)
    return {
        "applicable": applicable,
        "closed_under_composition": composes,
        "rero_bound": success_bound,
    }


def refused(i: Inputs) -> Any:
    calls: dict[str, Callable[[], Any]] = {
        "tv_eps_delta": lambda: approximate_total_variation(float(i["eps"]), i["delta"]),
        "thm43": lambda: (
            SuccessSets.on_line([0.0, 1.0], i["eta"]) if "eta" in i else FinitePrior(i["prior"])
        ),
        "prop53": lambda: PriorSummary.of(0.1, i["kappa_minus"], i["kappa_plus"]),
        "grr": lambda: mechanisms.grr_channel(i["m"], i["eps"]),
        "ss": lambda: mechanisms.ss_channel(i["m"], 1.0, i["omega"]),
        "gaussian": lambda: GaussianNoise(i["sigma"]),
        "calibrate_grr": lambda: calibration.grr_epsilon(i["rad"], i["m"], 1 / i["m"]),
        "ada": lambda: MuragAda(
            answerer=None,  # type: ignore[arg-type]
            budgets=DocumentBudgets(1, 1),
            epsilon_threshold=Fraction(1, 2),
            bins=tuple(Bin(Fraction(low), Fraction(high)) for low, high in i["bins"]),
            enough=1,
        ),
        "ksa": lambda: DpKsa(
            Fraction(1), Fraction(1), Fraction(1, 100), 10, tuple(i["k_candidates"])
        ),
        "auc": lambda: estimation.area_under_curve([0.5] * i["members"], [0.5]),
    }
    try:
        return calls[i["fn"]]()
    except ValueError as error:
        assert str(error).split(":")[0] in {
            "bins",
            "delta",
            "epsilon",
            "eta",
            "least_ball",
            "members",
            "prior",
            "records",
            "subset",
            "scale",
            "sizes",
        }  # the field's name comes first
        return "ValueError"


def power(i: Inputs) -> float:
    if "threshold" in i:
        return estimation.false_alarm(i["members"], i["nonmembers"], i["threshold"])
    return estimation.null_deviation(i["members"], i["nonmembers"])


RECOMPUTE: dict[str, Callable[[Inputs], Any]] = {
    "audit.eq61": lambda i: calibration.uniform_exact_guess_epsilon(i["rad"], i["m"], i["delta"]),
    "audit.inverse": inverse,
    "calibrate.gdp": gradient_noise,
    "calibrate.grr": inverse,
    "mia.auc": lambda i: estimation.area_under_curve(i["member"], i["nonmember"]),
    "mia.power": power,
    "rad.closed.oue": lambda i: mechanisms.oue_advantage_uniform(i["m"], i["eps"]),
    "rad.compare": crossing,
    "rad.continuous": continuous,
    "rad.cor56": lambda i: uniform_exact_guess_value(i["m"], i["eps"], i["delta"]),
    "rad.prop53": proposition,
    "rad.thm43.gaussian": on_line,
    "rad.thm43.grr": enumerated,
    "rad.thm43.laplace": on_line,
    "rad.thm43.oue": enumerated,
    "rad.thm43.ss": enumerated,
    "rad.thm51": trade_off_theorem,
    "rad.thm55": knapsack,
    "rad.worstprior": worst_prior,
    "rero": success,
    "ss.omega": lambda i: mechanisms.subset_size(i["m"], i["eps"], i["rule"]),
    "table1": table,
    "tv": total_variation,
    "validation": refused,
}
