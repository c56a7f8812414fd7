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
    arguments = _selection(work)
    baseline = measure("NumPy exact search, bare", work.exact_search, runs)
    proof = core.prove_selection(*arguments)
    proving = measure("prove one record", lambda: core.prove_selection(*arguments), runs)
    return [baseline, proving.beside(baseline, len(proof))]


def verify(work: Workload, runs: int) -> list[Measurement]:
    """Verifying one record, beside drawing its noise again, which a verifier must do anyway."""
    baseline = measure("draw the record's noise", work.noise, runs)
    statement = _statement(work)

    def run() -> None:
        core.verify_selection(*statement)

    return [baseline, measure("verify one record", run, runs).beside(baseline, len(statement[-1]))]


def reference(work: Workload, runs: int) -> list[Measurement]:
    """The reference verifier on one record, beside the compiled one on the same proof."""
    from ragaudit.verifier import reference as plain  # noqa: PLC0415 - another member

    context, rows, commitments, query, noise, top_k, selection, proof = _statement(work)

    def compiled() -> None:
        core.verify_selection(context, rows, commitments, query, noise, top_k, selection, proof)

    def pure() -> None:
        plain.verify_selection(
            context, rows, commitments, query.tolist(), noise.tolist(), top_k, selection, proof
        )

    baseline = measure("verify one record, compiled", compiled, runs)
    slow = measure("verify one record, reference", pure, runs)
    return [baseline, slow.beside(baseline, len(proof))]


def _selection(work: Workload) -> tuple[object, ...]:
    """Arguments of `core.prove_selection`, in their order."""
    noise = work.noise()
    selected = work.answer(noise)
    blinding = core.random_scalars(1)[0].tobytes()
    return (
        work.context, work.rows, work.blindings, work.commitments, work.query, noise,
        work.sizes.top_k, selected, blinding,
    )  # fmt: skip


def _statement(work: Workload) -> tuple[object, ...]:
    """Arguments of `core.verify_selection`, in their order, with a fresh proof at the end."""
    arguments = _selection(work)
    context, _, _, commitments, query, noise, top_k, selected, blinding = arguments
    selection = core.commit_selection(selected, blinding)
    proof = core.prove_selection(*arguments)
    return (context, work.sizes.rows, commitments, query, noise, top_k, selection, proof)


SCENARIOS: Mapping[str, Scenario] = {
    "index": index,
    "prove": prove,
    "verify": verify,
    "reference": reference,
}
