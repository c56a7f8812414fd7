"""Check disputes: answers beside the committed selection, and what drowns complaints of them."""

from dataclasses import replace
from functools import partial
from typing import Any, Final

import httpx
import numpy as np
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import InternalError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.attacks.cheat import ServiceCheat, part
from ragaudit.lab.scenario.scenario import Scenario
from ragaudit.lab.scenario.services import WINDOW
from ragaudit.ledger.messages.disputes import Dispute
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import Answer, Document, Openings, Request
from ragaudit.prover.answering.query import Admitted, Logged, Selected
from ragaudit.prover.window.records import SelectedRow
from ragaudit.verifier.service.disputes import PER_ACCOUNT

disputed = partial(ServiceCheat, checks=("disputes",), disputes=True)


@disputed(
    "k-not-the-requests", "SELECTION", reason="upheld by the arbiter: step 3", complaint="top_k"
)
class OtherK(Admitted):
    """Answers with another K than the account asked for.

    It is one row fewer, in the log and in the answer.

    Check 15 (`disputes`): step 3 of a receipt's check compares the asked K.
    """

    def record(self, request: Request, openings: Openings) -> Record:
        record = super().record(request, openings)
        return replace(record, top_k=max(1, request.top_k - 1))


@disputed(
    "answer-differs-from-the-selection",
    "RECEIPT",
    reason="upheld by the arbiter: step 7",
    complaint="step 7 (rows)",
)
class WithholdsADocument(Logged):
    """Leaves a selected document out of the answer.

    It is the last one.

    Check 15 (`disputes`): step 7 wants a document for each selected row.
    """

    def answer_documents(self) -> Answer:
        return Answer(super().answer_documents().documents[:-1])


@disputed(
    "content-not-of-its-row",
    "RECEIPT",
    reason="upheld by the arbiter: step 8",
    complaint="step 8 (commitments)",
)
class RewritesContent(Selected):
    """Serves content that the row's digest is not of.

    Check 15 (`disputes`): step 8 compares each content with its row's digest.
    """

    def documents(self) -> list[SelectedRow]:
        rows = super().documents()
        return [
            replace(row, document=replace(row.document, content=f"{row.document.content} (edited)"))
            for row in rows
        ]


class _AnyOrder(Answer):
    """An answer whose documents stand in any order."""

    def __post_init__(self) -> None:
        pass


@disputed(
    "rows-ordered-by-score",
    "RECEIPT",
    reason="upheld by the arbiter: step 4",
    complaint="positions not rising",
)
class OrdersByScore(Logged):
    """Answers best first, which tells more than the noised selection.

    Check 15 (`disputes`): an answer in any but rising order has not the form that step 4 wants.
    """

    def answer(self) -> ReceiptFile:
        embedding = np.array(self.record.openings.openings.embedding, dtype=np.int16)
        exact = self.context.mechanism.scores(self.index, embedding)
        best_first = sorted(self.rows, key=lambda row: -int(exact[row.position]))
        return Logged.answer(replace(self, rows=best_first))

    def answer_documents(self) -> Answer:
        return _AnyOrder(
            tuple(
                Document(row.position, row.document.id, row.document.content) for row in self.rows
            )
        )


_BASE: Final = f"/v1/windows/{WINDOW}"


class Bare:
    """An account without a library: it registers a dispute key and keeps receipt files.

    Attributes:
        key: the dispute key.
        files: the receipt files that came, as JSON, unchecked.
        pseudonym: of the registration, 32 bytes.
    """

    def __init__(self, scenario: Scenario, name: str) -> None:
        """Create the account in the tenant acme, and register it as a plain one.

        Args:
            scenario: an open one; the account's API key is noted there.
            name: a new one.

        Raises:
            InternalError: the prover declined.
        """
        self.name = name
        self.key = PrivateKey.from_seed(structure("dispute key of", name.encode()))
        self.files: list[dict[str, Any]] = []
        self._scenario = scenario
        scenario.keys[name] = scenario.prover.operate("accounts", {"tenant": "acme", "name": name})[
            "key"
        ]
        body = {"anchor": None, "dispute_key": self.key.public.raw.hex()}
        with scenario.http("prover", name) as prover:
            shown = demand(prover.post(f"{_BASE}/registration", json=body))
        self.pseudonym = bytes.fromhex(shown["pseudonym"])

    def ask(self, text: str) -> None:
        """Ask for two documents and keep the receipt file, whatever it says."""
        body = {"query": text, "top_k": 2, "filter": ""}
        with self._scenario.http("prover", self.name) as prover:
            self.files.append(demand(prover.post(f"{_BASE}/query", json=body)))

    def dispute(self, file: dict[str, Any], *, of: bytes | None = None) -> httpx.Response:
        """Dispute a file and return the verifier's response, also a refusal.

        Args:
            file: the receipt file as JSON.
            of: the pseudonym in whose name to dispute; this account's own if it is not given. The
                signature is this account's in either case.
        """
        made = Dispute.issue(self.key, pseudonym=of or self.pseudonym, receipt_file=file)
        with self._scenario.http("verifier") as verifier:
            return verifier.post(f"{_BASE}/disputes", json={"disputes": [made.to_json()]})


@ServiceCheat(
    "disputes-flooded",
    "RECEIPT",
    ("disputes",),
    parts=part(RewritesContent),
    reason="upheld by the arbiter: step 8",
    complaint="step 8 (commitments)",
)
class FloodsDisputes(Scenario):
    """Serves other content, and fills the intake of disputes before the victim's.

    mallory, the provider's, fills the intake; vera's one true dispute comes last.

    Check 15 (`disputes`) still sees it: each account has a quota of its own (§8.9).
    """

    def before_second(self, at: int) -> None:
        super().before_second(at)
        self.mallory, self.vera = Bare(self, "mallory"), Bare(self, "vera")
        # Without a cosigned registration before the second instant neither could ask (check 9).
        self.prover.checkpoint()

    def after_second(self, at: int) -> None:
        super().after_second(at)
        self.clock.at(at + 21)
        self.vera.ask("what vera asks")

    def after_submission(self) -> None:
        (true,) = self.vera.files
        taken = 0
        for number in range(3 * PER_ACCOUNT):
            # vera's answer, signed again and again: the provider has every receipt file.
            private = {**true["private"], "salt_r": structure("flood", number).hex()}
            digest = structure("flood answer", number).hex()
            public = {**true["public"], "answer_digest": digest}
            again = {**true, "private": private, "public": public}
            taken += self.mallory.dispute(again).is_success
        # Then no quota stopped mallory, and that vera's dispute is taken would show nothing.
        if taken > PER_ACCOUNT:
            raise InternalError(f"{taken} disputes of one account were taken")
        demand(self.vera.dispute(true))

    def after_sampling(self) -> None:
        """Take vera's file to the arbiter, since her record was sampled."""
        (true,) = self.vera.files
        self.arbitrate(self.vera.name, true)


def demand(answer: httpx.Response) -> Any:
    """Return the JSON of a response.

    Raises:
        InternalError: the response is an error, which no staging expects here.
    """
    if not answer.is_success:
        raise InternalError(f"{answer.request.url.path}: {answer.status_code} {answer.text}")
    return answer.json()
