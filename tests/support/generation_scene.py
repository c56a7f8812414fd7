"""A window with one question and its generated answer; parts can be changed before signing."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pytest
from generation_messages import ANSWER, GENERATION, KEYWORDS
from integrity_scene import NOISE, policy_value
from ragaudit.encoding.digests import leaf_data, salted
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.log.checkpoints import Checkpoint, SignedCheckpoint, sign_checkpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.chains import NonceChain
from ragaudit.ledger.messages.entries import Charge, Close, Generated, Opening, TenantOpening
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipt_check import AccountView, StepResult, WindowView, check_file
from ragaudit.ledger.messages.receipts import (
    AnyAnswer,
    GeneratedFile,
    GeneratedKeywords,
    GeneratedPrivate,
    GeneratedReceipt,
    GenerationRequest,
    LoggedEntry,
)
from ragaudit.ledger.messages.requests import Openings, embedding_digest
from receipt_scene import COSIGNER, LOG, OPERATIONS, PROVIDER, ROWS, salt, toy_embed

CHARGED, ANSWERED, SIZE = 3, 5, 8
WORDS = GeneratedKeywords("take mirazo at night", ("mirazo", "night"))
_QUESTION, _EMBEDDING = "what is it?", (120, 0, 30, 0)


@lru_cache
def words_policy(
    *, keywords: bool, final: str = "model", cosigners: tuple[str, str] | None = None
) -> Policy:
    """A policy whose questions are answered by tokens, or by keywords.

    Args:
        cosigners: demand and trust policy, if further ones are to stand behind the log.
    """
    generation: dict[str, Any] = {**GENERATION, **(KEYWORDS if keywords else {})}
    if keywords:
        generation["answerer"] = {**generation["answerer"], "final": final}
    more: dict[str, Any] = {}
    if cosigners is not None:
        more["cosigners"] = {"demand": cosigners[0], "trust": cosigners[1]}
    return Policy.from_json(policy_value(**NOISE, versions=False, generation=generation, **more))


def log_of(entries: dict[int, bytes], size: int = SIZE) -> MemoryTree:
    """A log of so many entries with these leaves at their places."""
    return MemoryTree([entries.get(i, f"leaf {i}".encode()) for i in range(size)])


def signed(tree: MemoryTree) -> SignedCheckpoint:
    return sign_checkpoint(Checkpoint(LOG.name, tree.head()), LOG)


def closing(window: str = "w1") -> tuple[bytes, bytes]:
    """Salt and body of a close entry."""
    return salt(33), Close(window, 0, 1, 1_900_000).encode()


@dataclass(frozen=True)
class GenerationScene:
    """One question and its answer; `proven` says of which entries the file has the proof."""

    request: GenerationRequest
    charge: Charge
    nonce: bytes | None
    answer: AnyAnswer
    private: GeneratedPrivate
    view: WindowView
    account: AccountView
    anchor: bytes | None
    promise: Promise | None
    proven: tuple[bool, bool] = (True, True)

    def receipt(self) -> GeneratedReceipt:
        """The public part without proofs."""
        return self.bare().public

    def bare(self) -> GeneratedFile:
        """The file without proofs."""
        digest = self.answer.digest(self.private.salt_a)
        answered = Generated("w1", "acme", CHARGED, 1_200_100, self.nonce, digest)
        return GeneratedFile.issue(
            PROVIDER, origin=LOG.name, issued=1_202_000,
            charge=LoggedEntry(CHARGED, salt(8), self.charge.encode()),
            answered=LoggedEntry(ANSWERED, salt(9), answered.encode()),
            request=self.request, answer=self.answer, private=self.private,
        )  # fmt: skip

    def signed(self, file: GeneratedFile) -> GeneratedFile:
        """The file as the provider would sign it, whatever stands in it."""
        public = file.public
        return GeneratedFile.issue(
            PROVIDER, origin=public.origin, issued=public.issued, charge=public.charge,
            answered=public.answer, request=file.request, answer=file.answer, private=file.private,
        )  # fmt: skip

    def file(self) -> GeneratedFile:
        public = self.receipt()
        leaves = {entry.index: leaf_data(entry.salt, kind, entry.body)
                  for kind, entry in public.entries}  # fmt: skip
        tree = log_of(leaves)
        head = signed(tree)
        note = head.note.with_signatures([cosign(head.note.text, COSIGNER, 1201)]).encode()
        entries = [
            entry.with_proof(TlogProof(entry.index, tree.inclusion_proof(entry.index), note))
            if proven else entry
            for (_, entry), proven in zip(public.entries, self.proven, strict=True)
        ]  # fmt: skip
        public = replace(public, charge=entries[0], answer=entries[1])
        return GeneratedFile(self.request, self.answer, public, self.private)

    def check(self, **changes: Any) -> list[StepResult]:
        arguments: dict[str, Any] = {
            "anchor": self.anchor,
            "promise": self.promise,
            "embed": toy_embed,
            "account": self.account,
        }
        file = changes.pop("file", None) or self.file()
        return check_file(file, self.view, OPERATIONS, **{**arguments, **changes})

    def fails(self, step: int, message: str, **changes: Any) -> None:
        with pytest.raises(ReceiptRejected, match=message) as caught:
            self.check(**changes)
        assert caught.value.where.startswith(f"step {step} "), caught.value


def generation_scene(
    *,
    keywords: bool = True,
    anchored: bool = False,
    final: str = "model",
    cosigners: tuple[str, str] | None = None,
) -> GenerationScene:
    """An honest scene, by keywords or by tokens, of an anchored or of a plain account."""
    policy = words_policy(keywords=keywords, final=final, cosigners=cosigners)
    tenants = tuple(TenantOpening(each, ROWS, bytes(32), bytes(32)) for each in ("acme", "zeta"))
    pseudonym, counter = salt(55), 2
    chain = NonceChain("w1", pseudonym, salt(66), policy.queries_per_account)
    openings = Openings(
        query=_QUESTION, salt_q=salt(11), embedding=_EMBEDDING, salt_e=salt(12), filter="",
        salt_f=salt(13), sketch=OPERATIONS.sketch(_EMBEDDING, bytes([7]) * 32, 64),
        salt_s=salt(14), kind="text",
    )  # fmt: skip
    request = GenerationRequest(_QUESTION, "", counter if anchored else None)
    charge = Charge(
        policy_digest=policy.digest, window="w1", tenant="acme", version=1, rows=ROWS,
        filter_digest=salted(openings.salt_f, ""), pseudonym=pseudonym, epoch=1, slot=1,
        counter=counter, activation=2, time=1_200_000,
        query_digest=salted(openings.salt_q, openings.question.data),
        embedding_digest=embedding_digest(openings.salt_e, _EMBEDDING),
        sketch_digest=salted(openings.salt_s, openings.sketch),
        number=0, threshold=9000, charge=salt(21),
    )  # fmt: skip
    promise = None
    if anchored:
        promise = Promise.issue(
            PROVIDER, origin=LOG.name, body=charge.encode(), request=request, openings=openings
        )
    joined = GeneratedKeywords(" ".join(WORDS.keywords or ()), WORDS.keywords)
    answer: AnyAnswer = (joined if final == "keywords" else WORDS) if keywords else ANSWER
    return GenerationScene(
        request=request,
        charge=charge,
        nonce=chain.nonce(counter) if anchored else None,
        answer=answer,
        private=GeneratedPrivate(openings, salt(16)),
        view=WindowView(
            policy, Opening(policy.digest, bytes(32), salt(77), tenants), covered_sizes=(1, 3)
        ),
        account=AccountView("acme", pseudonym, 1, 2, counter),
        anchor=chain.anchor if anchored else None,
        promise=promise,
    )
