"""What verifier and provider say to each other around an audit (docs/spec 8.4, 8.5, 11.12).

The countersignature fixes the anchor of the activation chain, each activation reveals the chain's
next value, and a challenge names what is to be opened. Responses and replays open it.
"""

import hashlib
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, Self, TypeAlias

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import PREFIX, structure
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.tagged import DIGEST_BYTES, Field, decode, enc, read_digest, read_int
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.beacon import BeaconRound, Engine
from ragaudit.ledger.messages.chains import activation_randomness, verify_activation_preimage
from ragaudit.ledger.messages.commitments import KeyOpening
from ragaudit.ledger.messages.filters import MAX_FILTER_BYTES
from ragaudit.ledger.messages.generation_terms import Answerer, KeywordVoting
from ragaudit.ledger.messages.kernel import (
    Converted,
    Count,
    Digest,
    Integer,
    Items,
    Message,
    Milliseconds,
    Name,
    Nested,
    OneOf,
    Text,
)
from ragaudit.ledger.messages.policy import MAX_INSTANTS, Policy
from ragaudit.ledger.messages.receipts import AnyAnswer, GeneratedKeywords
from ragaudit.ledger.messages.requests import MAX_QUESTION_BYTES, int16_bytes
from ragaudit.ledger.messages.signed import VerifierMessage


class ReleaseMessage(VerifierMessage):
    """A message with a round of the beacon, where the policy names one.

    Attributes:
        round: of the beacon, as the verifier shows it; None under a policy without a beacon.
    """

    round: BeaconRound | None = field(default=None, kw_only=True)

    @property
    def beacon(self) -> bytes:
        """Randomness of the round, of an authenticated message; empty without one."""
        return b"" if self.round is None else self.round.randomness

    def beacon_randomness(self, policy: Policy, a: int, *, engine: Engine | None = None) -> bytes:
        """Return the randomness of R_a, empty under a policy without a beacon.

        Args:
            policy: of the window, which fixes chain and round.
            a: the instant, 1..A.
            engine: computes the pairing; the fastest that is installed if None.

        Raises:
            RejectedError: no round, another one, or not the chain's; or a round where the policy
                names no beacon.
            UnsupportedError: no library for pairings is installed.
        """
        expected = policy.round_of(a)
        if policy.beacon is None or expected is None:
            if self.round is not None:
                raise RejectedError("a round of a beacon", where=self.KIND, expected="none")
            return b""
        if self.round is None:
            raise RejectedError("no round of the beacon", where=self.KIND, expected=str(expected))
        return self.round.verify(policy.beacon.chain, expected, engine=engine)

    def _check_due(self, policy: Policy, a: int, time: int) -> None:
        """RejectedError if the message was made before its round was due.

        Args:
            time: of the message, Unix milliseconds.
        """
        due = 1000 * policy.release_instant(a)
        if policy.beacon is not None and time < due:
            raise RejectedError(
                "made before its round was due",
                where=self.KIND,
                expected=f"{rfc3339(due)} or later",
            )


def opening_digest(salt: bytes, body: bytes) -> bytes:
    """Return the 32 bytes by which a countersignature names the log's entry 0.

    Args:
        salt: of the entry, 32 bytes.
        body: of the entry, as it is logged.
    """
    # With the salt, which is part of the entry: its leaf data follows from the two, and no other
    # entry 0 can be shown to an account.
    return structure("opening-digest", salt, body)


class Countersignature(VerifierMessage, kind="countersignature"):
    """What the verifier agreed to, and when.

    Attributes:
        policy_digest: C_policy (5.2).
        opening_digest: of the log's entry 0.
        terms_digest: of the verifier's terms (9.4).
        activation_anchor: of the verifier's activation chain (5.6).
    """

    # One signature over all of them: nobody can show that the verifier agreed to this policy with
    # another opening, or on other terms.
    window: Name
    policy_digest: Digest
    opening_digest: Digest
    terms_digest: Digest
    activation_anchor: Digest
    time: Milliseconds

    def authenticate(self, policy: Policy, *, opening_salt: bytes, opening_body: bytes) -> None:
        """Check that the policy's verifier signed this for this window, policy and opening.

        Args:
            policy: the caller's; a countersignature of another one is no agreement about it.
            opening_salt: of the log's entry 0, 32 bytes.
            opening_body: of the log's entry 0.

        Raises:
            RejectedError: of another window, policy or opening.
            SignatureRejected: not signed with `keys.verifier`.
        """
        self.demand("window", self.window, policy.window)
        # Two providers may have windows of one name (8.3): the policy's digest says which is meant.
        self.demand("policy", self.policy_digest, policy.digest)
        # Salt and body come from whoever shows the opening; this makes them the ones that were
        # judged.
        found = opening_digest(opening_salt, opening_body)
        self.demand("opening", self.opening_digest, found)
        self.verify(policy.keys.verifier)


class Activation(ReleaseMessage, kind="activation"):
    """The value n_a, released at or after t_a, with the size of the log that it activates.

    Under a policy with a beacon it is released with the round R_a, when that is due or later.

    Attributes:
        a: number of the instant, from 1.
        preimage: n_a.
        covered_size: of the largest checkpoint cosigned strictly before t_a, in entries.
        time: of the release.
    """

    window: Name
    a: Annotated[int, Integer(1, MAX_INSTANTS)]
    preimage: Digest
    covered_size: Count
    time: Milliseconds

    def signed_fields(self) -> tuple[Field, ...]:
        """Return what the signature is over, in order."""
        fields = (self.window, self.a, self.preimage, self.covered_size, self.time)
        if self.round is None:
            return (*fields, None, None)
        return (*fields, self.round.round, self.round.signature)

    def authenticate(self, policy: Policy, *, anchor: bytes, number: int) -> None:
        """Check that this is the window's activation ``number``, signed and on the chain.

        Args:
            policy: of the window.
            anchor: of the countersigned activation chain, 32 bytes.
            number: the activation asked for, 1..A-1.

        Raises:
            RejectedError: of another window or number; without the beacon's round, or released
                before it was due.
            SignatureRejected: not signed with the policy's `keys.verifier`.
            ChainRejected: not the chain's value.
        """
        self.demand("window", self.window, policy.window)
        # The signature covers the size, of which the chain says nothing; the chain fixed n_a before
        # the window, even for the verifier, which could sign any value. Neither check replaces the
        # other.
        self.demand("activation", self.a, number)
        self.verify(policy.keys.verifier)
        verify_activation_preimage(policy.window, anchor, number, self.preimage)
        self.check_round(policy, number)

    def check_round(self, policy: Policy, number: int, *, engine: Engine | None = None) -> bytes:
        """Return the randomness of R_a, in time and as `beacon_randomness`, which see.

        Args:
            policy: of the window.
            number: a, 1..A-1.
            engine: computes the pairing.
        """
        self._check_due(policy, number, self.time)
        return self.beacon_randomness(policy, number, engine=engine)

    def randomness(self) -> bytes:
        """Return rnd_a, 32 bytes (docs/spec/05-records.md §5.6), of an authenticated activation."""
        return activation_randomness(self.window, self.a, self.preimage, self.beacon)


MAX_RECORDS: Final = 2**40
MAX_STRATUM_ID_BYTES: Final = 128

_Index: TypeAlias = Annotated[int, Integer(0, MAX_RECORDS)]
Indices: TypeAlias = Annotated[tuple[_Index, ...], Items(0, MAX_RECORDS)]

_ROWS: Final = "rows:"
_WHOLE: Final = ("tenant:", "charges:", _ROWS)
"""What the ids of strata begin with that hold all there is of a tenant."""


class Stratum(Message):
    """A stratum as the challenge names it.

    Attributes:
        id: ``tenant:<tenant>``, ``account:<pseudonym>``, ``receipts:<tenant>``,
            ``charges:<tenant>`` or ``rows:<tenant>``.
        population: leaf indices; None stands for all of the tenant, which log or index say.
        sample: leaf indices of the entries to open; of ``rows`` positions of the index.
    """

    id: Annotated[str, Text(1, MAX_STRATUM_ID_BYTES)]
    population: Indices | None
    sample: Indices

    @classmethod
    def of(cls, name: str, population: Sequence[int], sample: tuple[int, ...]) -> Self:
        """Return a drawn stratum as a challenge names it.

        Args:
            name: its id.
            population: what it was drawn from; named for submitted receipts alone.
            sample: what was drawn, rising.
        """
        return cls(name, None if name.startswith(_WHOLE) else tuple(population), sample)

    @property
    def whole(self) -> bool:
        """Whether it holds all records, charge entries or rows of a tenant."""
        return self.id.startswith(_WHOLE)

    @property
    def rows_of(self) -> str | None:
        """The tenant whose rows it holds; None of a stratum of log entries."""
        return self.id.removeprefix(_ROWS) if self.id.startswith(_ROWS) else None


RECEIPTS_LIST_TAG: Final = PREFIX + "receipts-list"
RECEIPTS_PER_GROUP: Final = 1000
MAX_STRATA: Final = 2_000_000  # one for each account and each tenant, with room


def receipts_digest(receipts: Iterable[tuple[int, bytes]]) -> bytes:
    """Return the digest of a receipts list, 32 bytes.

    Args:
        receipts: (leaf index, identity of 32 bytes) of each, in any order.
    """
    # Sorted, so that the digest names a set and says nothing of who came first; in groups, because
    # `enc` counts its fields in two bytes.
    fields: list[Field] = []
    groups: list[bytes] = []
    for count, (index, identity) in enumerate(sorted(receipts), start=1):
        fields += (index, identity)
        if count % RECEIPTS_PER_GROUP == 0:
            groups.append(enc(RECEIPTS_LIST_TAG, *fields))
            fields = []
    if fields:
        groups.append(enc(RECEIPTS_LIST_TAG, *fields))
    return hashlib.sha256(enc(RECEIPTS_LIST_TAG, *groups)).digest()


class ReceiptsList(VerifierMessage, kind="receipts-list"):
    """The verifier's commitment to the receipts that arrived before the sampling instant.

    Attributes:
        digest: of all receipts that arrived.
        count: of these receipts.
        time: the end of the intake.
    """

    window: Name
    digest: Digest
    count: Annotated[int, Integer(0, MAX_RECORDS)]
    time: Milliseconds

    def authenticate(self, policy: Policy) -> None:
        """Check that the policy's verifier made this list before the sampling instant.

        A later one could leave out the receipts that the sample would have hit.

        Args:
            policy: of the window.

        Raises:
            RejectedError: of another window, or made too late.
            SignatureRejected: not signed with `keys.verifier`.
        """
        self.demand("window", self.window, policy.window)
        self.verify(policy.keys.verifier)
        if self.time >= 1000 * policy.sampling_instant:
            raise RejectedError(
                "the receipts list is not older than the sampling instant", where=self.KIND
            )


class Challenge(ReleaseMessage, kind="challenge"):
    """What the provider is asked to open. Whether the sample is the due one is not checked here.

    Attributes:
        final_root, final_size: of the log.
        preimage: n_A, the seed of the activation chain.
        receipts_list: what the strata of accounts were drawn from.
        deadline: of the responses.
    """

    window: Name
    final_root: Digest
    final_size: Annotated[int, Integer(0, MAX_RECORDS)]
    preimage: Digest
    receipts_list: ReceiptsList
    strata: Annotated[tuple[Stratum, ...], Items(0, MAX_STRATA)]
    deadline: Milliseconds

    @property
    def sampled(self) -> frozenset[int]:
        """Leaf indices of the records and charge entries to open."""
        return frozenset(
            index for stratum in self.strata if stratum.rows_of is None for index in stratum.sample
        )

    @property
    def sampled_rows(self) -> dict[str, tuple[int, ...]]:
        """Positions of the rows to open, rising, by tenant; tenants without any are left out."""
        return {
            stratum.rows_of: stratum.sample
            for stratum in self.strata
            if stratum.rows_of is not None and stratum.sample
        }

    def signed_fields(self) -> tuple[Field, ...]:
        """Return the window, and the digest of the message without its signature."""
        # Strata are lists of lists, for which `enc` has no field: their canonical JSON is digested.
        unsigned = self.to_json()
        del unsigned["signature"]
        return (self.window, hashlib.sha256(canonical_json.dumps(unsigned)).digest())

    def authenticate(self, policy: Policy, *, anchor: bytes) -> None:
        """Check that the policy's verifier signed this challenge and its receipts list.

        Args:
            policy: of the window.
            anchor: of the countersigned activation chain, 32 bytes.

        Raises:
            RejectedError: of another window, with a receipts list made too late, without the
                beacon's round, or drawn before it was due.
            SignatureRejected: not signed with `keys.verifier`.
            ChainRejected: the preimage is not the chain's seed.
        """
        self.demand("window", self.window, policy.window)
        self.verify(policy.keys.verifier)
        # It has a signature and a time of its own, because it was made before the challenge: signed
        # only as a part of it, it could be as late.
        self.receipts_list.authenticate(policy)
        # n_A was fixed by the countersigned anchor: the verifier cannot draw until a sample suits
        # it.
        verify_activation_preimage(policy.window, anchor, policy.activations, self.preimage)
        self.check_round(policy)

    def check_round(self, policy: Policy, *, engine: Engine | None = None) -> bytes:
        """Return the randomness of the sampling round, in time and as `beacon_randomness`.

        Args:
            policy: of the window.
            engine: computes the pairing.
        """
        # The deadline counts from the drawing (8.4).
        drawn = self.deadline - 1000 * policy.audit.deadline_seconds
        self._check_due(policy, policy.activations, drawn)
        return self.beacon_randomness(policy, policy.activations, engine=engine)


NO_KEY: Final = KeyOpening(b"", (), ())
"""Of records that no noise was added to."""

RESPONSE_TAG: Final = PREFIX + "response"
_FIELDS: Final = 13
MAX_PATH: Final = 63
MAX_PROOF_BYTES: Final = 2**20  # a proof about 2^32 rows has less than 8 kB
MAX_RESPONSE_BYTES: Final = 2 * 2**20  # what the parts may have, and 4096 entries of the vector


@dataclass(frozen=True, slots=True)
class Response:
    """What the provider opened of a sampled record; nothing in it has been checked.

    Attributes:
        index: of the record's log entry.
        key: the noise key with its paths in C_seed; `NO_KEY` in a window without noise.
        query: `Question.data`; None where texts are not due
            (``salt_q`` too).
        embedding: the query vector, d entries in -2^15..2^15-1.
        filter: UTF-8 of the filter.
        proof: the selection argument.
    """

    index: int
    key: KeyOpening = field(repr=False)
    salt_q: bytes | None = field(repr=False)
    query: bytes | None = field(repr=False)
    salt_e: bytes = field(repr=False)
    embedding: tuple[int, ...] = field(repr=False)
    salt_f: bytes = field(repr=False)
    filter: bytes = field(repr=False)
    salt_s: bytes = field(repr=False)
    sketch: bytes = field(repr=False)
    proof: bytes = field(repr=False)

    def encode(self) -> bytes:
        """Return the response as it is sent."""
        return enc(
            RESPONSE_TAG,
            self.index,
            self.key.key,
            b"".join(self.key.counter_path),
            b"".join(self.key.slot_path),
            self.salt_q,
            self.query,
            self.salt_e,
            int16_bytes(self.embedding),
            self.salt_f,
            self.filter,
            self.salt_s,
            self.sketch,
            self.proof,
        )

    @classmethod
    def parse(cls, data: bytes, dimension: int, *, noised: bool = True) -> Self:
        """Return the response in ``data``, the strict inverse of `encode`.

        Args:
            data: as received.
            dimension: d of the policy, the length of the query vector.
            noised: of the policy; without noise there is no key, and one is refused.

        Raises:
            MalformedError: not a response, or a part of another length.
        """
        f = decode(RESPONSE_TAG, data, _FIELDS)
        limits = (MAX_QUESTION_BYTES, MAX_FILTER_BYTES)
        for part, limit in zip((f[5], f[9]), limits, strict=True):
            if len(part) > limit:
                raise MalformedError("text too long", where="response", expected=f"{limit} bytes")
        # Before anything verifies it: what a proof costs its reader grows with its length.
        if len(f[12]) > MAX_PROOF_BYTES:
            raise MalformedError("proof too long", where="response")
        if not noised and any(f[1:4]):
            raise MalformedError("a noise key", where="response", expected="absent")
        if len(f[7]) != 2 * dimension:
            raise MalformedError("embedding", where="response", expected=f"{dimension} times i16")
        # A text without its salt is refused below: nothing could compare it with the record.
        disclosed = bool(f[4] or f[5])
        return cls(
            index=read_int(f[0]),
            key=KeyOpening(read_digest(f[1]), _path(f[2]), _path(f[3])) if noised else NO_KEY,
            salt_q=read_digest(f[4]) if disclosed else None,
            query=f[5] if disclosed else None,
            salt_e=read_digest(f[6]),
            embedding=struct.unpack(f"<{dimension}h", f[7]),
            salt_f=read_digest(f[8]),
            filter=f[9],
            salt_s=read_digest(f[10]),
            sketch=f[11],
            proof=f[12],
        )


def _path(data: bytes) -> tuple[bytes, ...]:
    # A bound only; the due lengths follow from slots and r of the policy, see
    # `commitments.verify_key_opening`.
    if len(data) % DIGEST_BYTES or len(data) > MAX_PATH * DIGEST_BYTES:
        raise MalformedError("path", where="response", expected=f"at most {MAX_PATH} hashes")
    return tuple(data[at : at + DIGEST_BYTES] for at in range(0, len(data), DIGEST_BYTES))


MAX_REPLAY_BYTES: Final = 2**26
MAX_ROWS: Final = 2**16
MAX_STEPS: Final = 4096
MAX_VOTE_BYTES: Final = 2**14
_MAX_TEXT: Final = 2**20
_SCALAR_BYTES: Final = 32
_NAMES: Final = 256  # bytes of the members of a row, but for vector and texts
_ENTRY: Final = 7  # of a vector: "-32768,"
_TOKEN: Final = 9  # "16777216,"
_REST: Final = 2**20  # the answer, and what stands around the lists


_Int16: TypeAlias = Annotated[int, Integer(-(2**15), 2**15 - 1)]


class PaidRow(Message):
    """A row that a charge entry charges.

    Attributes:
        position: in the index.
        vector: X_i with the four numbers that complete its norm, d + 4 integers.
        blinding: of its commitment, a scalar.
    """

    position: Count
    vector: Annotated[tuple[_Int16, ...], Items(5, 4100)] = field(repr=False)
    blinding: Digest = field(repr=False)


_Text: TypeAlias = Annotated[str, Text(0, _MAX_TEXT)]


class UsedRow(Message):
    """A row that was put into a slot: what its row digest is of (5.4).

    Attributes:
        position: in the index; charged.
        id, attributes: of its document.
        content: of its document; None: it was gone or changed since, and was read as "".
        salt: of the row digest, 32 bytes.
    """

    position: Count
    id: Annotated[str, Text(1, _MAX_TEXT)] = field(repr=False)
    content: _Text | None = field(repr=False)
    attributes: _Text = field(repr=False)
    salt: Digest = field(repr=False)


_Vote: TypeAlias = Annotated[
    int | None,
    Converted(
        Integer(-1, 2**24),
        lambda vote: None if vote < 0 else vote,
        lambda vote: -1 if vote is None else vote,
    ),
]


class Votes(Message):
    """The tokens that were named for one place of an answer.

    Attributes:
        public: by the model that reads nothing.
        voters: by each voter, in the order of the voters; None for an empty vote.
    """

    public: Annotated[int, Integer(0, 2**24)]
    voters: Annotated[tuple[_Vote, ...], Items(1, 2**16)] = field(repr=False)


_VOTE: Final = OneOf(lambda vote: isinstance(vote, str), Text(0, MAX_VOTE_BYTES), Nested(Votes))
VotesOfAnswer: TypeAlias = Annotated[
    tuple[Votes, ...] | tuple[str, ...], Items(0, MAX_STEPS, _VOTE)
]
"""For each token of the answer; or, under DP-KSA, the whole answer of each voter in its order."""


class Replay(Message, kind="replay"):
    """Everything that sums and answer of a charge entry follow from, beside key and question.

    Attributes:
        blinding: rho of the charge entry's point, a scalar.
        rows: all that the entry charges, positions rising.
        used: those that were put into slots, positions rising.
        votes: for each token of the answer, in order; under DP-KSA whole answers, by voter.
        answer, salt_a: what opens the answer entry's digest; None of a void, which has no votes and
            uses nothing.
    """

    blinding: Digest = field(repr=False)
    rows: Annotated[tuple[PaidRow, ...], Items(0, MAX_ROWS)] = field(repr=False)
    used: Annotated[tuple[UsedRow, ...], Items(0, MAX_ROWS)] = field(repr=False)
    votes: VotesOfAnswer = field(repr=False)
    answer: AnyAnswer | None = field(repr=False)
    salt_a: Digest | None = field(repr=False)

    @classmethod
    def of_void(cls, blinding: bytes, rows: Iterable[PaidRow]) -> Self:
        """Return the replay of a charge without an answer, which has released sums alone."""
        return cls(blinding, tuple(rows), (), (), None, None)

    def _check(self) -> None:
        for name, listed in (("rows", self.rows), ("used", self.used)):
            positions = [row.position for row in listed]
            # One set of rows, one spelling; a row named twice would be committed to twice.
            if positions != sorted(set(positions)):
                raise MalformedError("positions do not rise", where=name)
        answer, votes = self.answer, self.votes
        if (answer is None) != (self.salt_a is None) or (answer is None and (self.used or votes)):
            expected = "null with a void alone, as salt_a is"
            raise MalformedError("null", where="answer", expected=expected)
        texts = {isinstance(each, str) for each in votes}
        of_words = isinstance(answer, GeneratedKeywords)
        if len(texts) > 1 or (answer is not None and (True in texts) != of_words):
            raise MalformedError("of another answerer than the answer", where="votes")

    @classmethod
    def parse(cls, data: bytes, most: int = MAX_REPLAY_BYTES) -> Self:
        """Return the replay of canonical bytes.

        Args:
            data: from a provider.
            most: how many bytes it may have, `longest_replay`; of more, nothing is parsed.

        Raises:
            MalformedError: longer, or as of `Message.parse`.
        """
        if len(data) > most:
            raise MalformedRecord(f"{len(data)} bytes", where="replay", expected=f"at most {most}")
        return super().parse(data)


def longest_replay(answerer: Answerer, dimension: int, rows: int) -> int:
    """Return how many bytes a replay of a question may have (spec 11.12), at most 2^26.

    Args:
        answerer: of the policy.
        dimension: d.
        rows: N of the tenant's index, of which a question may charge every one.
    """
    paid = min(rows, MAX_ROWS) * (_NAMES + _ENTRY * (dimension + 4))
    used = min(rows, answerer.slots) * (_NAMES + 2 * _MAX_TEXT)
    if isinstance(answerer, KeywordVoting):
        votes = answerer.voters * 2 * MAX_VOTE_BYTES
    else:
        votes = answerer.tokens * (_NAMES + _TOKEN * (answerer.voters + 1))
    return min(paid + used + votes + _REST, MAX_REPLAY_BYTES)
