"""Check 25: the rounds of the beacon that were mixed into activations and sample."""

from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.framework import Findings


def check_beacon(context: Context, found: Findings) -> None:
    """25: each release has the round that the policy fixed, and none was made before it was due."""
    policy = context.policy
    terms, numbers = policy.beacon, [policy.round_of(a) for a in range(1, policy.activations + 1)]
    assert terms is not None  # asked for by a check that is listed under such a policy only
    # As the policy fixes them; whether they were mixed in is what the check says.
    context.stated.beacon = {
        "chain": terms.chain.hash.hex(),
        "name": terms.chain.beacon_id,
        "delay_seconds": terms.delay_seconds,
        "rounds": numbers,
    }
    with found.attempt("activations"):
        found.note(f"{len(context.rounds)} activations, each with its round of the beacon")
    with found.attempt("sample"):
        _ = context.sampling_round
        found.note(f"the sample is drawn with round {numbers[-1]}")
    found.summary = f"rounds {numbers[0]} to {numbers[-1]} of {terms.chain.beacon_id} are mixed in"
