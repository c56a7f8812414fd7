"""A second opinion on a window's privacy: a check of your own at the end of the verifier's list.

Run it with ``python another_accountant.py``.
"""

from ragaudit.lab.scenario.window import Window
from ragaudit.privacy import NoisyScores, ZeroConcentratedAccountant
from ragaudit.verifier.engines import fastest_engine
from ragaudit.verifier.procedure import CHECKS, Check
from ragaudit.verifier.procedure import run as run_procedure
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.framework import Findings


def check_rho(context: Context, found: Findings) -> None:
    """22: rho of zero-concentrated privacy for the planned coalition."""
    policy = context.policy
    queries = policy.coalition_max * policy.queries_per_account
    event = NoisyScores.of_policy(policy.sigma, policy.relation, policy.rows_per_document, queries)
    found_rho = ZeroConcentratedAccountant().zero_concentrated(event)
    found.summary = f"rho = {float(found_rho.rho):.4f} ({found_rho.relation}), {queries} queries"


if __name__ == "__main__":
    window = Window()  # honest, small, in one process
    outcome = run_procedure(
        window.evidence(),
        engine=fastest_engine(),
        pins=window.pins,
        embedder=window.embedder,
        checks=(*CHECKS, Check(22, "rho", "Another accountant", check_rho)),
    )
    print(outcome.result)
    print(outcome.check("rho").reason)
