"""Receipts of both channels (docs/spec/05-records.md §5.8, docs/spec/11-generation.md §11.10).

The public part says: this record, or this charge and its answer, stands at this place of this log,
and this is the digest of what I gave out. The private part opens it to its account. Of a record it
also has what shows that nothing better was kept back where there is no noise: scores follow from
the rows, and the rows of T that were not served are opened together (4.6.10). Of a generated answer
nothing depends on how many documents paid, or on which: that stays with the provider.
`receipt_check` runs all checks.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Annotated, Any, ClassVar, Final, Self, TypeAlias

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import SALT_BYTES, leaf_data, structure
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.parameters import LIMITS
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.tagged import Field
from ragaudit.encoding.text import LONGEST_WORD, hex_decode, words
from ragaudit.ledger.errors import MalformedRecord, ReceiptRejected
from ragaudit.ledger.log.cosignatures import CosignedCheckpoint, CosignerPolicy
from ragaudit.ledger.log.notes import VerifierKey
from ragaudit.ledger.log.tlog_proof import MAX_PROOF_BYTES, TlogProof, verify_tlog_proof
from ragaudit.ledger.log.tree import MAX_TREE_SIZE, leaf_hash
from ragaudit.ledger.messages.columns import NO_COLUMNS
from ragaudit.ledger.messages.commitments import RowOpening, RowPath
from ragaudit.ledger.messages.entries import MAX_QUERIES, Charge, Generated, Record, check_range
from ragaudit.ledger.messages.fields import MAX_BODY_BYTES, Fields
from ragaudit.ledger.messages.filters import MAX_FILTER_BYTES, Filter, request_filter
from ragaudit.ledger.messages.generation_terms import MAX_KEYWORDS, MAX_TOKENS
from ragaudit.ledger.messages.kernel import (
    EMBEDDED,
    MAX_TIME,
    OMITTED,
    UNSIGNED,
    Converted,
    Digest,
    DocumentId,
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
from ragaudit.ledger.messages.policy import LARGE_B, Policy
from ragaudit.ledger.messages.requests import (
    MAX_QUERY_BYTES,
    Answer,
    Columns,
    Content,
    Openings,
    Packed,
    Position,
    Request,
    Score,
    check_rising,
)
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
    """A question to the generation channel.

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


MAX_SCORE = LARGE_B * LARGE_B
MAX_TIES_PROOF = 64  # times 32 bytes; 4096 entries of a row take 29
MAX_SELECTED = 2**13
"""Rows of T in a window without noise."""
MAX_UNSERVED_BYTES = 12 * 2**20
"""Of the leaves and paths of those that are not served, see `unserved_bytes`: most of what a
verifier reads of a disputed file. An account could not dispute what it cannot show."""


IdKey: TypeAlias = Annotated[Digest | None, OMITTED]


class ServedRow(RowOpening):
    """A served row with everything that opens it.

    Attributes:
        id, content: as served.
        columns, attributes: as served.
        id_key: in its leaf; with noise and ``owners`` alone: elsewhere it follows from
            the document secret, or there is none.
    """

    id: DocumentId = field(repr=False)
    content: Content = field(repr=False)
    columns: Columns = field(default=NO_COLUMNS, repr=False)
    attributes: Content = field(default="", repr=False)
    id_key: IdKey = None


class WithdrawnRow(Message):
    """One of the first K rows of T that was left out: its document changed or went in the window.

    Attributes:
        position: in the index, from 0.
        id: of the document.
        score: <e, X_i>, which the ties opening proves; None where there is no opening.
    """

    position: Position
    id: DocumentId = field(repr=False)
    score: Score | None = field(default=None, repr=False)


class UnservedRow(Message):
    """A row of T that was not served, as its leaf in C_idx: no id, no text, no vector.

    Attributes:
        position: in the index, from 0.
        commitment: C_i, 32 bytes.
        columns: canonical text of its public columns, for the filter.
        row_digest: 32 bytes, the last field of its leaf.
        path: of the leaf in C_idx, 32 bytes each.
        id_key: of its document, 32 bytes, which stands in the leaf too; None without ``owners``.
    """

    position: Position
    commitment: Digest
    columns: Columns = field(repr=False)
    row_digest: Digest
    path: RowPath = field(repr=False)
    id_key: IdKey = None


_UNSERVED_BYTES = 220  # of its JSON beside columns and path: names, two digests, the position
_KEY_BYTES = 80  # of its id key
_STEP_BYTES = 67  # of a path: a digest, quotes and a comma


def unserved_bytes(columns: Sequence[str], rows: int, *, owned: bool = False) -> int:
    """Return a bound on what unserved rows take of a receipt file.

    Args:
        columns: canonical texts of their public columns.
        rows: N of the index, which the length of a path follows from.
        owned: whether they have id keys.
    """
    # In JSON text a quote or a backslash becomes two bytes; control characters are escaped already.
    texts = sum(2 * len(text.encode()) for text in columns)
    each = _UNSERVED_BYTES + _STEP_BYTES * rows.bit_length() + (_KEY_BYTES if owned else 0)
    return texts + len(columns) * each


class TiesOpening(Message):
    """Shows that the served and withdrawn rows are the first K of T (spec 4.6.10).

    Attributes:
        rows: all rows of T that were not served, withdrawn ones among them, in rising position.
        proof: that withdrawn rows have their stated scores, and the others that of the last place.
    """

    rows: Annotated[tuple[UnservedRow, ...], Items(1, MAX_SELECTED)] = field(repr=False)
    proof: Annotated[bytes, Packed(MAX_TIES_PROOF, 32, "32 bytes")] = field(repr=False)

    def __post_init__(self) -> None:
        check_rising([row.position for row in self.rows], "ties")

    @property
    def commitments(self) -> bytes:
        """C_i of the rows, 32 bytes each."""
        return b"".join(row.commitment for row in self.rows)


class PrivateReceipt(Message, kind="receipt/private", where="private"):
    """The half for the account's eyes.

    Attributes:
        selected: T, positions of the rows that the record commits to, rising. In a window without
            noise ties are kept, and T may have more than K.
        selection_blinding: canonical scalar rho_sel of B_sel.
        salt_r: hides the answer in `answer_digest`.
        rows: the served ones, in the order of the answer.
        withdrawn: rows among the first K of T that are not served, rising.
        ties: where T has more than K rows; else None.
        document_secret: k_t of the tenant; None with noise or without ``owners`` (5.16).
    """

    openings: Annotated[Openings, EMBEDDED]
    selected: Annotated[tuple[Position, ...], Items(0, MAX_SELECTED)] = field(repr=False)
    selection_blinding: Digest = field(repr=False)
    salt_r: Digest = field(repr=False)
    rows: Annotated[Sequence[ServedRow], Items(0, LIMITS.top_k)] = field(repr=False)
    withdrawn: Annotated[tuple[WithdrawnRow, ...], Items(0, LIMITS.top_k)] = field(
        default=(), repr=False
    )
    ties: TiesOpening | None = field(default=None, repr=False)
    document_secret: Annotated[Digest | None, OMITTED] = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_rising(list(self.selected), "selected")
        check_rising([row.position for row in self.withdrawn], "withdrawn")


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
        return replace(self, proof=_text(proof))

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


class _PublicPart(AccountMessage):
    """The part that may be shown: entries, their places in the log, a digest, a signature.

    Attributes:
        origin: of the window's log.
    """

    origin: Origin

    @property
    def entries(self) -> tuple[tuple[str, LoggedEntry], ...]:
        """The entries with their kinds, in the order of the log; the first counts as a query."""
        raise NotImplementedError

    @property
    def query(self) -> Record | Charge:
        """The body of the entry that counts as a query; MalformedRecord if it is none."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """What findings call its query."""
        kind, entry = self.entries[0]
        return f"{'record' if kind == Record.KIND else 'charge entry'} {entry.index}"

    @property
    def identity(self) -> bytes:
        """What makes it one receipt, 32 bytes: what is signed, whatever the signature."""
        return structure(self.KIND, *self.signed_fields())

    @property
    def pseudonym(self) -> bytes:
        """Whose receipt it is, 32 bytes."""
        return self.query.pseudonym

    @property
    def window(self) -> str:
        """The window's name."""
        return self.query.window

    @property
    def leaves(self) -> tuple[tuple[str, int, bytes], ...]:
        """What it says is in the log: kind, index and leaf data of each entry."""
        return tuple((kind, entry.index, entry.leaf_data(kind)) for kind, entry in self.entries)

    @property
    def proofs(self) -> tuple[str | None, ...]:
        """The text of the inclusion proof of each of `leaves`, where there is one."""
        return tuple(entry.proof for _, entry in self.entries)

    def with_proofs(self, *proofs: TlogProof | None) -> Self:
        """Return the part with the inclusion proof of each entry, or without one.

        Args:
            proofs: under cosigned checkpoints; they are not checked here.
        """
        raise NotImplementedError

    def unproven(self) -> Self:
        """Return the part without its proofs, which nobody signed."""
        return self.with_proofs(*[None] * len(self.entries))

    def checkpoints(
        self, log_key: VerifierKey, cosigners: CosignerPolicy
    ) -> tuple[CosignedCheckpoint | None, ...]:
        """Return the checkpoint of each of `proofs`, checked; None where there is no proof.

        Args:
            log_key: of the policy.
            cosigners: whose signatures a checkpoint must have. The log's own is not enough: it
                could sign another tree for each account.

        Raises:
            ReceiptRejected: another log's receipt, or a proof of another index.
            MalformedNote, MalformedProof, NoteRejected, ProofRejected: a proof itself.
        """
        # The provider promised places in the log that its receipt names, and in no other.
        if self.origin != log_key.name:
            raise ReceiptRejected("of another log", where="receipt", expected=log_key.name)
        return tuple(
            None if entry.proof is None else entry.verify_inclusion(kind, log_key, cosigners)
            for kind, entry in self.entries
        )


class PublicReceipt(_PublicPart, kind="receipt"):
    """The public part of an answer of documents.

    Attributes:
        index: of the record's entry in the log.
        salt: of the entry.
        body: of the entry, a record's.
        issued: when it was signed.
        answer_digest: of request, answer and private part.
        proof: text of the .tlog-proof. It is added later and is not signed: it proves itself.
    """

    index: Annotated[int, Integer(0, min(MAX_TREE_SIZE, MAX_TIME))]
    salt: Digest = field(repr=False)
    body: Annotated[bytes, Hex(limit=MAX_BODY_BYTES)] = field(repr=False)
    issued: Milliseconds
    answer_digest: Digest
    proof: Annotated[Annotated[str, Text(1, MAX_PROOF_BYTES)] | None, UNSIGNED] = None

    @property
    def entries(self) -> tuple[tuple[str, LoggedEntry], ...]:
        """The record's entry."""
        return ((Record.KIND, LoggedEntry(self.index, self.salt, self.body, self.proof)),)

    @property
    def query(self) -> Record:
        """The record of the body; MalformedRecord if it is none."""
        return Record.parse(self.body)

    @property
    def nonce(self) -> bytes | None:
        """Of an anchored account's chain, 32 bytes: the record's."""
        return self.query.nonce

    def with_proofs(self, *proofs: TlogProof | None) -> Self:
        """Return the part with the inclusion proof of its record, or without one."""
        (proof,) = proofs
        return replace(self, proof=_text(proof))

    def _check(self) -> None:
        _ = self.query  # refused here, where the message is malformed, and nowhere later


class GeneratedReceipt(_PublicPart, kind="generated-receipt", where="receipt"):
    """The public part of a generated answer.

    Attributes:
        charge, answer: the entries. The answer's body has the digest of what was answered.
        issued: Unix milliseconds.
        answer_digest: of request, answer and private part, 32 bytes.
    """

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
    def index(self) -> int:
        """The place of the query in the log: that of the charge."""
        return self.charge.index

    @property
    def entries(self) -> tuple[tuple[str, LoggedEntry], ...]:
        """Charge and answer."""
        return (Charge.KIND, self.charge), (Generated.KIND, self.answer)

    @property
    def query(self) -> Charge:
        """The body of the charge entry; MalformedRecord if it is none."""
        return Charge.parse(self.charge.body)

    @property
    def answered(self) -> Generated:
        """The body of the answer entry."""
        return Generated.parse(self.answer.body)

    @property
    def nonce(self) -> bytes | None:
        """Of an anchored account's chain, 32 bytes: the answer's."""
        return self.answered.nonce

    def with_proofs(self, *proofs: TlogProof | None) -> Self:
        """Return the part with the inclusion proofs of charge and answer, or without them."""
        charge, answer = proofs
        return replace(
            self, charge=self.charge.with_proof(charge), answer=self.answer.with_proof(answer)
        )

    def _check(self) -> None:
        # Bodies that are none are refused here, and nowhere later. What they say of each other is
        # for whoever judges: the provider signed it.
        _ = self.query, self.answered


PublicPart: TypeAlias = PublicReceipt | GeneratedReceipt
"""Of a record (5.8), or of a generated answer (11.10)."""


def _text(proof: TlogProof | None) -> str | None:
    return None if proof is None else proof.encode().decode()


class _ReceiptFile(Message):
    """Everything an account keeps of one question.

    Attributes:
        SALT: the member of the private part that hides the answer in the digest.
    """

    SALT: ClassVar[str]

    request: Any
    answer: Any
    public: Any
    private: Any

    def verify_answer_digest(self) -> None:
        """Check that the public part names exactly this request, answer and private part.

        Raises:
            ReceiptRejected: another answer was signed.
        """
        if answer_digest(self.request, self.answer, self.private) != self.public.answer_digest:
            raise ReceiptRejected("another answer was signed", where="answer_digest")


class ReceiptFile(_ReceiptFile, kind="receipt/file", where="receipt file"):
    """Everything an account keeps of one answer of documents."""

    SALT = "salt_r"

    request: Request
    answer: Answer
    public: PublicReceipt
    private: PrivateReceipt
    # Not an argument: a file with another part has none, and encodes what it is made of.
    _halves: tuple[bytes, bytes, bytes] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    @classmethod
    def of_encoded(
        cls,
        request: Request,
        answer: Answer,
        public: PublicReceipt,
        private: PrivateReceipt,
        halves: tuple[bytes, bytes, bytes],
    ) -> Self:
        """Return the file of parts that were encoded for their digest: they are most of it.

        Args:
            halves: what `encode` returned of request, answer and private part.
        """
        file = cls(request, answer, public, private)
        object.__setattr__(file, "_halves", halves)  # frozen for everybody else
        return file

    def to_json(self) -> dict[str, Any]:
        """Return the file as a JSON object."""
        shown = super().to_json()
        shown.pop("_halves", None)
        return shown

    def encode(self) -> bytes:
        """Return the file in canonical JSON."""
        if self._halves is None:
            return canonical_json.dumps(self.to_json())
        request, answer, private = self._halves
        return canonical_json.join(
            {
                "format": canonical_json.dumps(self.FORMAT),
                "request": request,
                "answer": answer,
                "public": self.public.encode(),
                "private": private,
            }
        )

    @property
    def asked(self) -> Request:
        """The request, as the digests of the record cover it."""
        return self.request


class GeneratedFile(_ReceiptFile, kind="generated/file", where="receipt file"):
    """Everything an account keeps of one generated answer."""

    SALT = "salt_a"

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
            answer_digest=answer_digest(request, answer, private),
        ).signed(key)  # fmt: skip
        return cls(request, answer, public, private)

    @property
    def asked(self) -> Request:
        """The request, as the digests of the charge cover it."""
        return self.request.retrieval

    def verify_openings(self) -> None:
        """Check that question and answer are those of the entries.

        Norm of the embedding, sketch, signature and inclusion are the caller's.

        Raises:
            ReceiptRejected: another question or answer than the entries have.
        """
        self.private.openings.verify(self.public.query, self.asked)
        if self.answer.digest(self.private.salt_a) != self.public.answered.generated_digest:
            raise ReceiptRejected("does not open its digest", where="answer")


AnyFile: TypeAlias = ReceiptFile | GeneratedFile
"""Of either channel."""


def answer_digest(
    request: Request | GenerationRequest,
    answer: Answer | AnyAnswer,
    private: PrivateReceipt | GeneratedPrivate,
) -> bytes:
    """Return what the public part says of the answer, 32 bytes (docs/spec/05-records.md §5.8).

    Args:
        request, answer, private: of one receipt file; the salt of the private part hides them.
    """
    salt = private.salt_r if isinstance(private, PrivateReceipt) else private.salt_a
    # In canonical bytes: whoever keeps the parts as JSON values can still repeat the digest.
    return digest_of((request.encode(), answer.encode(), private.encode()), salt)


def digest_of(halves: tuple[bytes, bytes, bytes], salt: bytes) -> bytes:
    """Return `answer_digest` of parts that are encoded.

    Args:
        halves: canonical bytes of request, answer and private part.
        salt: of the private part, 32 bytes: salt_r, of a generated answer salt_a.
    """
    return structure("answer", salt, *halves)


def read_public_part(value: Any, where: str = "") -> PublicPart:
    """Return the public part of a JSON value, of the channel that its format names.

    Args:
        value: the JSON value.
        where: of the value, for errors.

    Raises:
        MalformedRecord: a public part of neither channel; one that names no format is judged as
            that of a record. Nothing is verified.
    """
    named = value.get("format") if isinstance(value, dict) else None
    kind = GeneratedReceipt if named == GeneratedReceipt.FORMAT else PublicReceipt
    return kind.from_json(value, where)


def read_receipt(value: Mapping[str, Any]) -> AnyFile:
    """Return the receipt file of a JSON value, of the channel that its format names.

    Args:
        value: the JSON value.

    Raises:
        MalformedRecord: a file of neither channel; one that names no format is judged as that of
            a record. Nothing is verified.
    """
    return file_class(value).from_json(value)


def file_class(value: Mapping[str, Any]) -> type[ReceiptFile] | type[GeneratedFile]:
    """Return the class of files of the channel that a file, or a public part alone, names."""
    generated = value.get("format") in (GeneratedFile.FORMAT, GeneratedReceipt.FORMAT)
    return GeneratedFile if generated else ReceiptFile


def query_index(receipt_file: Mapping[str, Any]) -> int:
    """Return the place in the log that a file names: of its record, or of its charge entry.

    The rest of the file may have any form: a provider signs what it likes, and that is disputed.

    Args:
        receipt_file: JSON, as it was received.

    Raises:
        MalformedRecord: no public part, or none with an index.
    """
    entry = receipt_file.get("public")
    if file_class(receipt_file) is GeneratedFile and isinstance(entry, Mapping):
        entry = entry.get("charge")
    index = entry.get("index") if isinstance(entry, Mapping) else None
    return Fields({"index": index}, "index", MalformedRecord, "public").integer(
        "index", 0, MAX_TIME
    )


def bound_receipt(document: Mapping[str, Any], policy: Policy) -> PublicPart:
    """Return the public part, without proofs, of a file that the provider's signature binds whole.

    The parts are taken as they are: an answer in a form that no honest provider gives is the
    provider's own when it signed its digest.

    Args:
        document: a receipt file, of a record or of a generated answer, as JSON value.
        policy: of the window whose receipt it must be.

    Raises:
        RagauditError: not a receipt file, not signed, or the digest names another answer.
    """
    salt = file_class(document).SALT
    match document:
        case {
            "format": ReceiptFile.FORMAT | GeneratedFile.FORMAT,
            "request": request,
            "answer": answer,
            "public": public,
            "private": {**private},
            **more,
            # A member beside these would be covered by no digest.
        } if isinstance(private.get(salt), str) and not more:
            kind = GeneratedReceipt if salt == GeneratedFile.SALT else PublicReceipt
            receipt: PublicPart = kind.from_json(public, "public")
            if receipt.origin != policy.origin:
                raise ReceiptRejected("of another log", where="origin", expected=policy.origin)
            # Before the digest: anybody can make up parts that fit each other, and they accuse
            # nobody.
            receipt.verify(policy.keys.provider)
            parts = [canonical_json.dumps(part) for part in (request, answer, private)]
            digest = digest_of(
                (parts[0], parts[1], parts[2]), hex_decode(str(private[salt]), SALT_BYTES)
            )
            if digest != receipt.answer_digest:
                raise ReceiptRejected("another answer was signed", where="answer_digest")
            # A proof is nobody's statement: whoever brings the file could have put any into it.
            return receipt.unproven()
    raise MalformedError("not a receipt file", where="receipt file", expected=ReceiptFile.FORMAT)
