"""What the verifier asks to be opened, and what is opened (docs/spec/08-services.md §8.4, §8.5)."""

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import PREFIX
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.tagged import DIGEST_BYTES, Field, decode, enc, read_digest, read_int
from ragaudit.ledger.messages.beacon import Engine
from ragaudit.ledger.messages.chains import verify_activation_preimage
from ragaudit.ledger.messages.filters import MAX_FILTER_BYTES
from ragaudit.ledger.messages.kernel import Digest, Integer, Items, Milliseconds, Name
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.questions import MAX_QUESTION_BYTES
from ragaudit.ledger.messages.released import ReleaseMessage
from ragaudit.ledger.messages.seed_commitments import KeyOpening
from ragaudit.ledger.messages.signed import VerifierMessage
from ragaudit.ledger.messages.strata import MAX_RECORDS, Stratum
from ragaudit.ledger.messages.vectors import int16_bytes

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
    # `seed_commitments.verify_key_opening`.
    if len(data) % DIGEST_BYTES or len(data) > MAX_PATH * DIGEST_BYTES:
        raise MalformedError("path", where="response", expected=f"at most {MAX_PATH} hashes")
    return tuple(data[at : at + DIGEST_BYTES] for at in range(0, len(data), DIGEST_BYTES))
