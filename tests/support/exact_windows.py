"""Windows without noise on the prover's scenario, and an obvious oracle of their answers."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.prover.backends.interface import Document, attributes_text
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.store import tables
from scenario import ProverScenario
from sqlalchemy import delete, update

COLUMNS = {"lang": "string", "year": "integer"}
EXACT = {
    "privacy": "none",
    "opens_after_seconds": 60,
    "length_seconds": 600,
    "activation_every_seconds": 100,
    "sampling_after_seconds": 60,
    "merge_delay_seconds": 55,
    "top_k_max": 4,
    "queries_per_account": 30,
    "slots": 4,
    "release_seconds": 60,
    "public_columns": COLUMNS,
    "filters": True,
    "query_kinds": ["text", "vector"],
    "audit": {"mode": "A", "deadline_seconds": 600},
}


def texts(count: int = 12) -> list[Document]:
    """Documents of tenant one, of two languages and three years; one has no columns."""
    return [
        Document(
            f"one-{n}",
            f"document {n} of one",
            attributes_text({"lang": "en" if n % 2 else "de", "year": 2020 + n % 3, "n": n}, "d"),
        )
        for n in range(count - 1)
    ] + [Document(f"one-{count - 1}", f"document {count - 1} of one")]


def start(
    scenario: ProverScenario,
    documents: list[Document] | None = None,
    users: Sequence[str] = (),
    **more: Any,
) -> None:
    """Open a window without noise with ada, cyd and ``users`` registered, who are made here."""
    store = StoredDocuments(scenario.service.store)
    store.add("one", documents or texts(), replace=True)
    for user in users:
        scenario.keys[user] = scenario.service.accounts.add("one", user)
    scenario.open(window=EXACT, registered=("ada", "cyd", *users), **more)


def ask(scenario: ProverScenario, query: str = "bread", top_k: int = 3, **more: Any) -> ReceiptFile:
    """Ask as ada and return the receipt file."""
    body = {"query": query, "top_k": top_k, **more}
    answer = scenario.post("/v1/windows/w1/query", "ada", body)
    assert answer.status_code == 200, answer.text
    return ReceiptFile.parse(answer.content)


def exact(scenario: ProverScenario, file: ReceiptFile, allowed: Callable[[int], bool]) -> list[Any]:
    """The K best positions with scores, by an obvious route over the committed integers."""
    index = scenario.service.open_windows.get("w1").indexes["one"]
    e = np.array(file.private.openings.embedding, dtype=np.int64)
    scores = index.vectors.astype(np.int64) @ e
    ranked = sorted((-int(score), at) for at, score in enumerate(scores) if allowed(at))
    return [(at, -score) for score, at in ranked[: file.request.top_k]]


def shown(file: ReceiptFile) -> list[Any]:
    return [(document.position, document.score) for document in file.answer.documents]


def change(scenario: ProverScenario, name: str, content: str | None) -> None:
    """Change a document in the store behind the prover's back, or delete it."""
    table = tables.document
    with scenario.service.store.write() as connection:
        of = table.c.id == name
        connection.execute(
            delete(table).where(of)
            if content is None
            else update(table).where(of).values(content=content)
        )


def later(scenario: ProverScenario, seconds: int) -> None:
    """Have the log cosigned, go to a time after the start, and take over what was released."""
    scenario.service.driver.step("w1")
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().start + seconds)
    scenario.verifier.app.state.service.scheduler.tick()  # type: ignore[attr-defined]
    scenario.service.driver.step("w1")
