"""The scenarios by name."""

from collections.abc import Callable, Mapping

from ragaudit.cli.bench import answering, answering_http, auditing, proofs
from ragaudit.cli.bench.measure import Measurement
from ragaudit.cli.bench.scenario import Task

__all__ = ["SCENARIOS", "Scenario"]

Scenario = Callable[[Task], list[Measurement]]

SCENARIOS: Mapping[str, Scenario] = {
    "index": proofs.index,
    "prove": proofs.prove,
    "verify": proofs.verify,
    "reference": proofs.reference,
    "answer": answering.answer,
    "answer-http": answering_http.answer_http,
    "audit": auditing.audit,
}
