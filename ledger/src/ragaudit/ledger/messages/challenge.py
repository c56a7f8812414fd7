"""What the verifier asks for at the sampling instant: docs/spec/08-services.md §8.4."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import PREFIX
from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.signing import SIGNATURE_BYTES, PrivateKey
from ragaudit.encoding.tagged import DIGEST_BYTES, Field, enc
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.chains import verify_activation_preimage
from ragaudit.ledger.messages.json_fields import Fields
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.signed import MAX_TIME, VerifierMessage

RECEIPTS_LIST_TAG: Final = PREFIX + "receipts-list"
RECEIPTS_PER_GROUP: Final = 1000
MAX_STRATA: Final = 2_000_000
MAX_RECORDS: Final = 2**40
MAX_STRATUM_ID_BYTES: Final = 128


def receipts_digest(receipts: Iterable[tuple[int, bytes]]) -> bytes:
    """Return the digest of a receipts list, 32 bytes.

    Args:
        receipts: (leaf index, identity of 32 bytes) of each, in any order.
    """
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptsList(VerifierMessage):
    """The verifier's commitment to the receipts that arrived before the sampling instant.

    Attributes:
        digest: `receipts_digest`, 32 bytes.
        count: of the receipts.
        time: the end of the intake, Unix milliseconds.
    """

    KIND: ClassVar[str] = "receipts-list"
    MEMBERS: ClassVar[str] = "window digest count time"

    window: str
    digest: bytes
    count: int
    time: int

    @classmethod
    def issue(cls, key: PrivateKey, *, window: str, digest: bytes, count: int, time: int) -> Self:
        """Commit to the receipts that arrived up to ``time``; the arguments are the attributes."""
        return cls(window=window, digest=digest, count=count, time=time)._signed(key)

    def members(self) -> dict[str, Any]:
        """Return the members beside ``format`` and ``signature`` as JSON values."""
        return {
            "window": self.window,
            "digest": self.digest.hex(),
            "count": self.count,
            "time": self.time,
        }

    def signed_fields(self) -> tuple[Field, ...]:
        """Return what the signature is over, in order."""
        return (self.window, self.digest, self.count, self.time)

    @classmethod
    def of_fields(cls, f: Fields) -> Self:
        """Return the message with these members; MalformedRecord."""
        return cls(
            window=f.text("window", 1, 64),
            digest=f.hex("digest", DIGEST_BYTES),
            count=f.integer("count", 0, MAX_RECORDS),
            time=f.integer("time", 0, MAX_TIME),
            signature=f.hex("signature", SIGNATURE_BYTES),
        )

    def authenticate(self, policy: Policy) -> None:
        """Check that the policy's verifier made this list before the sampling instant.

        Raises:
            RejectedError: of another window, or made too late.
            SignatureRejected: not signed with `keys.verifier`.
        """
        self._demand("window", self.window, policy.window)
        self.verify(policy.keys.verifier)
        if self.time >= 1000 * policy.sampling_instant:
            raise RejectedError(
                "the receipts list is not older than the sampling instant", where=self.KIND
            )


@dataclass(frozen=True, slots=True)
class Stratum:
    """A stratum as the challenge names it.

    Attributes:
        id: ``tenant:<tenant>`` or ``account:<pseudonym>``.
        population: leaf indices; None stands for all records of the tenant.
        sample: leaf indices of the records to open.
    """

    id: str
    population: tuple[int, ...] | None
    sample: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the stratum as a member of the challenge."""
        population = None if self.population is None else list(self.population)
        return {"id": self.id, "population": population, "sample": list(self.sample)}

    @classmethod
    def from_json(cls, value: Any, where: str) -> "Stratum":
        """Return the stratum of a JSON value, the strict inverse of `to_json`.

        Args:
            where: the value's place, for errors.

        Raises:
            MalformedRecord: not a stratum.
        """
        f = Fields(value, "id population sample", MalformedRecord, where)
        bounds = ((0, MAX_RECORDS), 0, MAX_RECORDS)
        population = None if f.raw("population") is None else f.integers("population", *bounds)
        return cls(f.text("id", 1, MAX_STRATUM_ID_BYTES), population, f.integers("sample", *bounds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge(VerifierMessage):
    """What the provider is asked to open. Whether the sample is the due one is not checked here.

    Attributes:
        final_root, final_size: of the log.
        preimage: n_A, 32 bytes: the seed of the activation chain.
        receipts_list: what the strata of accounts were drawn from.
        deadline: of the responses, Unix milliseconds.
    """

    KIND: ClassVar[str] = "challenge"
    MEMBERS: ClassVar[str] = "window final_root final_size preimage receipts_list strata deadline"

    window: str
    final_root: bytes
    final_size: int
    preimage: bytes
    receipts_list: ReceiptsList
    strata: tuple[Stratum, ...]
    deadline: int

    @classmethod
    def issue(
        cls,
        key: PrivateKey,
        *,
        window: str,
        final_root: bytes,
        final_size: int,
        preimage: bytes,
        receipts_list: ReceiptsList,
        strata: tuple[Stratum, ...],
        deadline: int,
    ) -> Self:
        """Challenge the provider to open a sample; the arguments are the attributes."""
        return cls(
            window=window,
            final_root=final_root,
            final_size=final_size,
            preimage=preimage,
            receipts_list=receipts_list,
            strata=strata,
            deadline=deadline,
        )._signed(key)

    @property
    def sampled(self) -> frozenset[int]:
        """Leaf indices of the records to open."""
        return frozenset(index for stratum in self.strata for index in stratum.sample)

    def members(self) -> dict[str, Any]:
        """Return the members beside ``format`` and ``signature`` as JSON values."""
        return {
            "window": self.window,
            "final_root": self.final_root.hex(),
            "final_size": self.final_size,
            "preimage": self.preimage.hex(),
            "receipts_list": self.receipts_list.to_json(),
            "strata": [stratum.to_json() for stratum in self.strata],
            "deadline": self.deadline,
        }

    def signed_fields(self) -> tuple[Field, ...]:
        """Return the window, and the digest of the message without its signature."""
        unsigned = canonical_json.dumps({"format": PREFIX + self.KIND, **self.members()})
        return (self.window, hashlib.sha256(unsigned).digest())

    @classmethod
    def of_fields(cls, f: Fields) -> Self:
        """Return the message with these members; MalformedRecord."""
        listed = f.raw("receipts_list")
        return cls(
            window=f.text("window", 1, 64),
            final_root=f.hex("final_root", DIGEST_BYTES),
            final_size=f.integer("final_size", 0, MAX_RECORDS),
            preimage=f.hex("preimage", DIGEST_BYTES),
            receipts_list=ReceiptsList.from_json(listed, f.path("receipts_list")),
            strata=tuple(
                Stratum.from_json(item, where) for where, item in f.objects("strata", 0, MAX_STRATA)
            ),
            deadline=f.integer("deadline", 0, MAX_TIME),
            signature=f.hex("signature", SIGNATURE_BYTES),
        )

    def authenticate(self, policy: Policy, *, anchor: bytes) -> None:
        """Check that the policy's verifier signed this challenge and its receipts list.

        Args:
            anchor: of the countersigned activation chain, 32 bytes.

        Raises:
            RejectedError: of another window, or with a receipts list made too late.
            SignatureRejected: not signed with `keys.verifier`.
            ChainRejected: the preimage is not the chain's seed.
        """
        self._demand("window", self.window, policy.window)
        self.verify(policy.keys.verifier)
        self.receipts_list.authenticate(policy)
        verify_activation_preimage(policy.window, anchor, policy.activations, self.preimage)
