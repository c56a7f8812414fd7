"""What is measured, each beside a baseline that runs in the same process."""

import hashlib
from collections.abc import Callable, Mapping

from ragaudit import core
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.cli.bench.measure import Measurement, measure
from ragaudit.cli.bench.workload import Workload

__all__ = ["SCENARIOS", "Scenario"]

Scenario = Callable[[Workload, int], list[Measurement]]


def index(work: Workload, runs: int) -> list[Measurement]:
    """Committing and proving an index, beside quantising and hashing the same rows."""

    def quantise_and_hash() -> None:
        for row in quantise_rows(work.embeddings):
            hashlib.sha256(row.tobytes()).digest()

    def commit_and_prove() -> bytes:
        commitments = core.commit_rows(work.rows, work.blindings)
        return core.prove_index(work.context, work.rows, work.blindings, commitments)

    proof = commit_and_prove()
    sizes = work.sizes
    baseline = measure("quantise the rows and hash each", quantise_and_hash, runs)
    both = measure("commit the rows and prove the index", commit_and_prove, runs)

    def verify() -> None:
        core.verify_index(work.context, sizes.rows, sizes.dimension, work.commitments, proof)

    verification = measure("verify the index proof", verify, runs)
    return [
        baseline,
        both.beside(baseline, len(proof)),
        verification.beside(baseline),
    ]


def prove(work: Workload, runs: int) -> list[Measurement]:
    """Proving one record, beside NumPy's exact search for the same query."""
    prover = work.prover()
    baseline = measure("NumPy exact search, bare", work.exact_search, runs)
    return [baseline, measure("prove one record", prover, runs).beside(baseline, len(prover()))]


def verify(work: Workload, runs: int) -> list[Measurement]:
    """Verifying one record, beside drawing its noise again, which a verifier must do anyway."""
    baseline = measure("draw the record's noise", work.noise, runs)
    statement = work.statement()
    verification = measure("verify one record", lambda: core.verify_selections([statement]), runs)
    return [baseline, verification.beside(baseline, len(statement.proof))]


def reference(work: Workload, runs: int) -> list[Measurement]:
    """The reference verifier on one record, beside the compiled one on the same proof."""
    from ragaudit.verifier import reference as plain  # noqa: PLC0415 - another member

    each = work.statement()

    def pure() -> None:
        plain.verify_selection(
            each.context,
            each.rows,
            each.commitments,
            each.query.tolist(),
            each.noise.tolist(),
            each.top_k,
            each.selection_commitment,
            each.proof,
        )

    compiled = measure("verify one record, core", lambda: core.verify_selections([each]), runs)
    slow = measure("verify one record, reference", pure, runs)
    return [compiled, slow.beside(compiled, len(each.proof))]


def answer(work: Workload, runs: int) -> list[Measurement]:
    """Answering over HTTP; the services and the text are its own."""
    from ragaudit.cli.bench import answering  # noqa: PLC0415 - imports the demonstration

    return answering.answer(work.sizes, runs)


SCENARIOS: Mapping[str, Scenario] = {
    "index": index,
    "prove": prove,
    "verify": verify,
    "reference": reference,
    "answer": answer,
}
