"""Prove and verify one selection, with the compiled core and with the verifier in plain Python.

Run it with ``python two_arguments.py``.
"""

import numpy as np
from ragaudit import core
from ragaudit.circuits.selection import scores, select
from ragaudit.circuits.statements import SelectionStatement
from ragaudit.verifier import reference

generator = np.random.default_rng(7)
vectors = generator.integers(-20, 21, size=(12, 8)).astype(np.int8)
rows = core.complete_rows(vectors)  # four squares make every norm exactly 127
blindings = core.random_scalars(len(rows))
commitments = core.commit_rows(rows, blindings)

query = generator.integers(-20, 21, size=8).astype(np.int16)
noise = generator.integers(
    -40_000, 40_001, size=12
)  # for the example; the service's comes from a key
selected = select(scores(vectors, query) + noise, 3)

context, blinding = bytes(32), core.random_scalars(1)[0].tobytes()
commitment = core.commit_selection(selected, blinding)
statement = SelectionStatement(
    context=context,
    rows=12,
    commitments=commitments,
    query=query,
    noise=noise,
    top_k=3,
    selection_commitment=commitment,
)
proof = core.prove_selection(statement, rows, blindings, selected, blinding)
core.verify_selection(statement, proof)
reference.verify_selection(
    context, 12, commitments, query.tolist(), noise.tolist(), 3, commitment, proof
)

try:
    reference.verify_selection(
        context, 12, commitments, query.tolist(), noise.tolist(), 2, commitment, proof
    )
except reference.ProofRejected as error:
    print("another K:", error)
