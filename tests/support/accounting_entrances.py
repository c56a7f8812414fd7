"""Entrances of the accounting: guarantees, accountants, budgets, samples, the report."""

from decimal import Decimal
from fractions import Fraction

from entrances import EPSILON, EVENT, HALF, MU, REPLACE, TENTH, entrance
from ragaudit.privacy import guarantees, sample
from ragaudit.privacy.accounting import (
    accountants,
    collusion,
    events,
    gaussian,
    generation,
    renyi,
    risk,
)
from ragaudit.privacy.accounting.events import NoisyScores
from ragaudit.privacy.accounting.report import epsilon_report
from ragaudit.privacy.coalition import hamming_threshold

ACCOUNT_PRIOR = risk.PriorSummary.uniform(3)
G, A, C, S = gaussian, accountants, collusion, sample
RELEASE = C.ScoreReleaseClass(Fraction(1), TENTH, 100, REPLACE)

ACCOUNTING = [
    entrance(guarantees.ApproximateDp, epsilon=1, delta=HALF, relation=REPLACE),
    entrance(guarantees.ApproximateDp.of, epsilon=1, delta=HALF, relation=REPLACE),
    entrance(guarantees.GaussianDp, mu=HALF, relation=REPLACE),
    entrance(guarantees.ZeroConcentratedDp, rho=HALF, relation=REPLACE),
    entrance(guarantees.TotalVariation, value=HALF, relation=REPLACE),
    entrance(EPSILON.under, relation=REPLACE),
    entrance(MU.at_delta, delta=TENTH),
    entrance(MU.at_epsilon, epsilon=HALF),
    entrance(guarantees.ApproximateDp.compose, parts=[EPSILON, EPSILON]),
    entrance(guarantees.strength, advantage=HALF),
    entrance(guarantees.membership_sentence, advantage=HALF, relation=REPLACE),
    entrance(guarantees.guarantee_sentence, advantage=HALF, relation=REPLACE, accounts=3),
    entrance(
        NoisyScores, sigma_units=200, relation=REPLACE, group_size=1, queries=5, gamma=TENTH
    ),
    entrance(
        NoisyScores.of_policy, sigma=HALF, relation=REPLACE, group_size=1, queries=5, gamma=TENTH
    ),
    entrance(events.Coalition, account=EVENT, accounts=3, windows=2),
    entrance(events.RealisedCoalition, mechanism=EVENT, counts=(3, 2), accounts=1),
    entrance(events.WholeTenant, mechanism=EVENT, records=3),
    entrance(events.Composition, parts=(EVENT, EVENT)),
    entrance(events.releases, event=EVENT),
    entrance(events.relation_of, event=EVENT),
    *(entrance(each.price, event=EVENT, delta=TENTH) for each in A.ACCOUNTANTS),
    entrance(A.GaussianAccountant().gaussian, event=EVENT),
    entrance(A.GaussianAccountant().at_epsilon, event=EVENT, epsilon=HALF),
    entrance(A.GaussianAccountant().within, event=EVENT, budget=EPSILON),
    entrance(A.ZeroConcentratedAccountant().zero_concentrated, event=EVENT),
    entrance(A.GaussianAccountant),
    entrance(A.ZeroConcentratedAccountant),
    entrance(A.LossDistributionAccountant),
    entrance(A.RenyiAccountant, orders=(2, 3), conversion="canonne"),
    entrance(G.delta, mu=HALF, epsilon_value=HALF),
    entrance(G.least_epsilon, mu=HALF, target=TENTH, slack=0),
    entrance(G.least_delta, mu=HALF, epsilon_value=HALF, slack=0),
    entrance(G.epsilon, event=EVENT, target=TENTH),
    entrance(G.gives, event=EVENT, epsilon_value=HALF, target=TENTH),
    entrance(G.meets, mu=HALF, epsilon_value=HALF, target=TENTH, slack=0),
    entrance(renyi.mironov_epsilon, rho=HALF, target=TENTH, order=2),
    entrance(renyi.canonne_epsilon, rho=HALF, target=TENTH, order=2),
    entrance(renyi.optimal, rho=HALF, target=TENTH),
    entrance(generation.bounded_range, order=2, epsilon=HALF),
    entrance(generation.pure_or_bounded_range, order=2, epsilon=HALF),
    entrance(generation.KeywordSetLoss, epsilon_choice=HALF, sigma=2, questions=1),
    entrance(generation.calibrated, epsilon=HALF, delta_conversion=TENTH, questions=1),
    entrance(
        generation.channel_loss,
        epsilon_choice=HALF,
        sigma=2,
        uses=1,
        delta_conversion=TENTH,
    ),
    entrance(generation.pass_probability, gap=3, sigma=2, delta_test=TENTH),
    entrance(renyi.bound, event=EVENT, target=TENTH),
    entrance(risk.membership_advantage, mu=HALF),
    entrance(risk.auc, mu=HALF),
    entrance(risk.trade_off_gap, mu=HALF, alpha=TENTH),
    entrance(risk.attribute_advantage, mu=HALF, prior=ACCOUNT_PRIOR),
    entrance(risk.reconstruction_advantage, mu=HALF, prior=ACCOUNT_PRIOR),
    entrance(risk.record_mu, event=EVENT),
    entrance(gaussian.largest_mu, epsilon_value=1, target=TENTH, slack=0),
    entrance(
        gaussian.calibrate, epsilon_value=1, target=TENTH, queries=3, relation=REPLACE,
        group_size=1, gamma=Fraction(1, 2**100), places=6,
    ),
    entrance(accountants.largest_queries, mechanism=EVENT, epsilon=1, delta=TENTH),
    entrance(accountants.largest_rate, mechanism=EVENT, epsilon=1, delta=TENTH, accounts=2),
    entrance(accountants.largest_coalition, mechanism=EVENT, epsilon=1, delta=TENTH, rate=2),
    entrance(accountants.remaining_queries, spent=EVENT, mechanism=EVENT, budget=EPSILON),
    entrance(
        accountants.calibrate_coalition, epsilon=1, delta=TENTH, accounts=2, rate=3,
        relation=REPLACE, group_size=1, windows=1, gamma=Fraction(1, 2**100), places=6,
    ),
    entrance(
        C.ScoreReleaseClass, epsilon_acc=1, delta_acc=TENTH, queries=100, relation=REPLACE
    ),
    entrance(RELEASE.sigma, sensitivity=HALF),
    entrance(RELEASE.coalition, accounts=2, delta_comp=TENTH),
    entrance(RELEASE.audit, accounts=2, delta_policy=HALF),
    entrance(RELEASE.gaussian, accounts=2),
    entrance(
        C.advanced_composition, epsilon_q=HALF, delta_q=0, times=2, delta_comp=TENTH,
        relation=REPLACE,
    ),
    entrance(
        C.renyi_closed_form, sigma=2, sensitivity=1, queries=3, delta=TENTH, relation=REPLACE
    ),
    entrance(C.renyi_sigma, epsilon_acc=1, delta_acc=TENTH, queries=2),
    entrance(C.membership_lower_bound, guarantee=MU),
    entrance(C.exposure, rows=10, selected=2, queries=3),
    entrance(S.bad_records, population=10, beta=TENTH),
    entrance(S.miss_probability, population=10, bad=2, sample=3),
    entrance(S.sample_size, population=10, beta=TENTH, eta=HALF),
    entrance(S.sample_size_unbounded, beta=TENTH, eta=HALF),
    entrance(S.detection, beta=TENTH, sample=3),
    entrance(
        epsilon_report, "gamma", sigma=Decimal(9), relation="replace", group_size=1,
        queries_per_account=20, coalition=5, delta_policy=Decimal("0.125"),
        gamma=Fraction(1, 2**100), total_records=100, realised_counts=[20, 3],
        epsilon_acc=8, delta_acc=Decimal("0.0625"),
    ),
    entrance(hamming_threshold, theta=Decimal("0.75"), bits=128),
]  # fmt: skip
