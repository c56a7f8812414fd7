"""Questions, answers and receipts of the generation channel (docs/spec/11-generation.md §11.10).

Nothing here depends on how many documents paid, or on which: that stays with the provider.
"""

import re
from dataclasses import field, replace
from typing import Annotated, Final, Self, TypeAlias

from ragaudit.encoding.digests import leaf_data, structure
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.tagged import Field
from ragaudit.encoding.text import LONGEST_WORD, words
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.log.cosignatures import CosignedCheckpoint, CosignerPolicy
from ragaudit.ledger.log.notes import VerifierKey
from ragaudit.ledger.log.tlog_proof import MAX_PROOF_BYTES, TlogProof, verify_tlog_proof
from ragaudit.ledger.log.tree import MAX_TREE_SIZE, leaf_hash
from ragaudit.ledger.messages.entries import MAX_QUERIES, Charge, Generated, check_range
from ragaudit.ledger.messages.fields import MAX_BODY_BYTES
from ragaudit.ledger.messages.filters import MAX_FILTER_BYTES, Filter, request_filter
from ragaudit.ledger.messages.generation_terms import MAX_KEYWORDS, MAX_TOKENS
from ragaudit.ledger.messages.kernel import (
    EMBEDDED,
    MAX_TIME,
    OMITTED,
    Converted,
    Digest,
    Hex,
    Integer,
    Items,
    Message,
    Milliseconds,
    Nested,
    OneOf,
    Origin,
    OrNull,
    Text,
)
from ragaudit.ledger.messages.manifests import MAX_VOCABULARY
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import digest_of
from ragaudit.ledger.messages.requests import MAX_QUERY_BYTES, Openings, Request
from ragaudit.ledger.messages.signed import AccountMessage

MAX_IGNORED: Final = 16
_SETTING = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)


def _check_setting(name: str) -> None:
    if _SETTING.fullmatch(name) is None:
        raise MalformedError("not a name", expected="a-z, 0-9 and _")


def _ignored(names: tuple[str, ...] | None) -> tuple[str, ...]:
    # One spelling of nothing: without the member.
    if names is not None and (not names or list(names) != sorted(set(names))):
        raise MalformedError("empty, or do not rise", expected="names in order, each once")
    return names or ()


Ignored: TypeAlias = Annotated[
    tuple[str, ...],
    Converted(
        OrNull(Items(0, MAX_IGNORED, Text(1, 64, _check_setting, "name of a setting"))),
        _ignored,
        lambda names: list(names) or None,
    ),
    OMITTED,
]


class GenerationRequest(Message, where="request"):
    """A question to be answered in words.

    Attributes:
        query: 1..8192 bytes of UTF-8.
        filter: canonical text (5.12), at most 16 KiB; empty: none.
        counter: of an anchored client; None for a plain one.
        ignored: names of settings that came with the question and changed nothing, at most
            `MAX_IGNORED`, rising. They are part of what was asked: the provider signs that it did
            not honour them.
    """

    query: Annotated[str, Text(1, MAX_QUERY_BYTES)] = field(repr=False)
    filter: Annotated[str, Text(0, MAX_FILTER_BYTES)] = field(default="", repr=False)
    counter: Annotated[int, Integer(0, MAX_QUERIES - 1)] | None = None
    ignored: Ignored = ()

    def check_policy(self, policy: Policy) -> Filter:
        """Return the filter of a request that the window takes.

        Raises:
            UnsupportedError: the window has no generation channel, or knows no such filter.
            MalformedRecord: a filter that is none.
        """
        if policy.generation is None:
            raise UnsupportedError("no generation channel in this window", where="window")
        return request_filter(self.filter, policy)

    @property
    def retrieval(self) -> Request:
        """The same question as the retrieval channel knows it: what its digests cover is one."""
        return Request(self.query, 1, self.counter, self.filter, kind="text")


MAX_TEXT_BYTES: Final = 2**18  # of an answer


def _check_keyword(text: str) -> None:
    if words(text) != {text}:
        raise MalformedError("not a word", expected="letters and digits, case-folded")


AnswerText: TypeAlias = Annotated[str, Text(0, MAX_TEXT_BYTES)]
Token: TypeAlias = Annotated[int, Integer(0, MAX_VOCABULARY - 1)]
Keyword: TypeAlias = Annotated[str, Text(0, 4 * LONGEST_WORD, _check_keyword, "a word")]


class GeneratedAnswer(Message, where="answer"):
    """What is released.

    Attributes:
        text: of the tokens; the end token has none.
        tokens: of the committed vocabulary, the end token included where it ended the answer.
        private: how many of them the documents were asked for.
    """

    text: AnswerText = field(repr=False)
    tokens: Annotated[tuple[Token, ...], Items(0, MAX_TOKENS)] = field(repr=False)
    private: Annotated[int, Integer(0, MAX_TOKENS)]

    def __post_init__(self) -> None:
        check_range("private tokens", self.private, 0, len(self.tokens))

    def digest(self, salt: bytes) -> bytes:
        """Return what the answer entry says of the answer, 32 bytes (11.9).

        Args:
            salt: salt_a, 32 bytes.
        """
        return structure("generated", salt, self.encode())


class GeneratedKeywords(Message, where="answer"):
    """An answer of DP-KSA.

    Attributes:
        text: of the final answer, at most 2^18 bytes.
        keywords: that were released, rising, since their ranks are private; None where the test
            failed.
    """

    text: AnswerText = field(repr=False)
    keywords: Annotated[tuple[Keyword, ...], Items(0, MAX_KEYWORDS)] | None = field(repr=False)

    @property
    def private(self) -> int:
        """How many words the documents were asked for: none where the test failed."""
        return len(self.keywords or ())

    def digest(self, salt: bytes) -> bytes:
        """Return what the answer entry says of the answer, 32 bytes (11.9).

        Args:
            salt: salt_a, 32 bytes.
        """
        return structure("generated", salt, self.encode())

    def _check(self) -> None:
        found = self.keywords or ()
        # A set has one spelling, and an order of its own would tell the ranks.
        if list(found) != sorted(set(found)):
            raise MalformedError("do not rise", where="keywords", expected="in order, each once")


AnyAnswer: TypeAlias = Annotated[
    GeneratedAnswer | GeneratedKeywords,
    OneOf(
        lambda answer: isinstance(answer, dict) and "keywords" in answer,
        Nested(GeneratedKeywords),
        Nested(GeneratedAnswer),
    ),
]


class LoggedEntry(Message):
    """An entry of a receipt, and where it stands.

    Attributes:
        index: in the log.
        salt, body: of the entry.
        proof: text of the .tlog-proof; it is added later, and proves itself.
    """

    index: Annotated[int, Integer(1, min(MAX_TREE_SIZE, MAX_TIME))]
    salt: Digest = field(repr=False)
    body: Annotated[bytes, Hex(limit=MAX_BODY_BYTES)] = field(repr=False)
    proof: Annotated[str, Text(1, MAX_PROOF_BYTES)] | None = field(default=None, repr=False)

    def leaf_data(self, kind: str) -> bytes:
        """Return the leaf of an entry of ``kind`` before it is hashed, 32 bytes."""
        return leaf_data(self.salt, kind, self.body)

    def with_proof(self, proof: TlogProof | None) -> "LoggedEntry":
        """Return the entry with its inclusion proof, which is not checked here, or without one."""
        return replace(self, proof=None if proof is None else proof.encode().decode())

    def verify_inclusion(
        self, kind: str, log_key: VerifierKey, cosigners: CosignerPolicy
    ) -> CosignedCheckpoint:
        """Return the cosigned checkpoint under which an entry of ``kind`` is leaf `index`.

        Raises:
            ReceiptRejected: no proof yet, or of another index.
            MalformedNote, MalformedProof, NoteRejected, ProofRejected: the proof itself.
        """
        if self.proof is None:
            raise ReceiptRejected("the inclusion proof is outstanding", where=kind)
        proof = TlogProof.parse(self.proof.encode())
        if proof.index != self.index:
            raise ReceiptRejected("a proof of another index", where=kind)
        leaf = leaf_hash(self.leaf_data(kind))
        return verify_tlog_proof(proof, leaf=leaf, log_key=log_key, cosigners=cosigners)


class GeneratedReceipt(AccountMessage, kind="generated-receipt", where="receipt"):
    """The half that may be shown: both entries, their places, and a signature.

    Attributes:
        origin: of the window's log.
        charge, answer: the entries. The answer's body has the digest of what was answered.
        issued: Unix milliseconds.
        answer_digest: of request, answer and private part, 32 bytes: see `GeneratedFile`.
    """

    origin: Origin
    charge: LoggedEntry
    answer: LoggedEntry
    issued: Milliseconds
    answer_digest: Digest

    def signed_fields(self) -> tuple[Field, ...]:
        """Return what the signature is over, in order."""
        entries = [
            value
            for entry in (self.charge, self.answer)
            for value in (entry.index, entry.salt, entry.body)
        ]
        return (self.origin, *entries, self.issued, self.answer_digest)

    @property
    def identity(self) -> bytes:
        """What makes it one receipt, 32 bytes: what is signed, whatever the signature."""
        return structure("generated-receipt", *self.signed_fields())

    @property
    def index(self) -> int:
        """The place of the query in the log: that of the charge."""
        return self.charge.index

    @property
    def pseudonym(self) -> bytes:
        """Whose receipt it is, 32 bytes."""
        return self.charged.pseudonym

    @property
    def window(self) -> str:
        """The window's name."""
        return self.charged.window

    @property
    def entries(self) -> tuple[tuple[str, LoggedEntry], tuple[str, LoggedEntry]]:
        """Both entries with their kinds, in the order of the log."""
        return (Charge.KIND, self.charge), (Generated.KIND, self.answer)

    @property
    def leaves(self) -> tuple[tuple[str, int, bytes], ...]:
        """What it says is in the log: kind, index and leaf data of both entries."""
        return tuple((kind, entry.index, entry.leaf_data(kind)) for kind, entry in self.entries)

    @property
    def proofs(self) -> tuple[str | None, ...]:
        """The text of the inclusion proof of each of `leaves`, where there is one."""
        return self.charge.proof, self.answer.proof

    def checkpoints(
        self, log_key: VerifierKey, cosigners: CosignerPolicy
    ) -> tuple[CosignedCheckpoint | None, ...]:
        """Return the checkpoint of each of `proofs`, checked; None where there is no proof.

        Raises:
            ReceiptRejected: another log's receipt, or as `LoggedEntry.verify_inclusion`.
            MalformedNote, MalformedProof, NoteRejected, ProofRejected: as there.
        """
        # The provider promised places in the log that its receipt names, and in no other.
        if self.origin != log_key.name:
            raise ReceiptRejected("of another log", where="receipt", expected=log_key.name)
        return tuple(
            None if entry.proof is None else entry.verify_inclusion(kind, log_key, cosigners)
            for kind, entry in self.entries
        )

    def with_proofs(self, charge: TlogProof | None, answer: TlogProof | None) -> "GeneratedReceipt":
        """Return the receipt with these inclusion proofs, which are not checked here."""
        entries = self.charge.with_proof(charge), self.answer.with_proof(answer)
        return replace(self, charge=entries[0], answer=entries[1])

    @property
    def charged(self) -> Charge:
        """The body of the charge entry."""
        return Charge.parse(self.charge.body)

    @property
    def answered(self) -> Generated:
        """The body of the answer entry."""
        return Generated.parse(self.answer.body)

    def _check(self) -> None:
        # Bodies that are none are refused here, and nowhere later. What they say of each other is
        # for whoever judges: the provider signed it.
        _ = self.charged, self.answered


class GeneratedPrivate(Message, kind="generated/private"):
    """The half that opens the entries to their account; never a row, a position or a count.

    Attributes:
        openings: of the question, as of a record.
        salt_a: of the answer's digest, 32 bytes.
    """

    openings: Annotated[Openings, EMBEDDED]
    salt_a: Digest = field(repr=False)

    def _check(self) -> None:
        if self.openings.kind != "text":
            raise MalformedError("not a known value", where="kind", expected="text")


class GeneratedFile(Message, kind="generated/file", where="receipt file"):
    """Everything that an account keeps of one answer."""

    request: GenerationRequest
    answer: AnyAnswer
    public: GeneratedReceipt
    private: GeneratedPrivate

    @classmethod
    def issue(
        cls,
        key: PrivateKey,
        *,
        origin: str,
        charge: LoggedEntry,
        answered: LoggedEntry,
        issued: int,
        request: GenerationRequest,
        answer: AnyAnswer,
        private: GeneratedPrivate,
    ) -> Self:
        """Return the file of two durable entries, signed part for part.

        Args:
            key: the provider's.
            origin: of the window's log.
            charge, answered: the entries.
            issued: Unix milliseconds.
            request, answer, private: the attributes.
        """
        public = GeneratedReceipt(origin=origin, charge=charge, answer=answered, issued=issued,
            answer_digest=_digest(request, answer, private),
        ).signed(key)  # fmt: skip
        return cls(request, answer, public, private)

    def verify_answer_digest(self) -> None:
        """Check that the public part names exactly this request, answer and private part.

        Raises:
            ReceiptRejected: another answer was signed.
        """
        if _digest(self.request, self.answer, self.private) != self.public.answer_digest:
            raise ReceiptRejected("another answer was signed", where="answer_digest")

    def verify_openings(self) -> None:
        """Check that question and answer are those of the entries.

        Norm of the embedding, sketch, signature and inclusion are the caller's.

        Raises:
            ReceiptRejected: another question or answer than the entries have.
        """
        self.private.openings.verify(self.public.charged, self.request.retrieval)
        if self.answer.digest(self.private.salt_a) != self.public.answered.generated_digest:
            raise ReceiptRejected("does not open its digest", where="answer")

    def with_proofs(self, charge: TlogProof, answer: TlogProof) -> "GeneratedFile":
        """Return the file with the inclusion proofs of both entries, which are not checked here."""
        return replace(self, public=self.public.with_proofs(charge, answer))


def _digest(request: GenerationRequest, answer: AnyAnswer, private: GeneratedPrivate) -> bytes:
    """Return what the public part says of the parts, 32 bytes: as of a record (5.8)."""
    return digest_of((request.encode(), answer.encode(), private.encode()), private.salt_a)
