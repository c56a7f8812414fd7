"""The verifier's signed messages, read and verified: docs/spec/08-services.md §8.4."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import SIGNATURE_BYTES, SignatureRejected, verify
from ragaudit.encoding.tagged import DIGEST_BYTES, Field
from ragaudit.ledger.errors import ChainRejected
from ragaudit.ledger.log.tree import MAX_TREE_SIZE
from ragaudit.ledger.messages.chains import verify_activation_preimage
from ragaudit.ledger.messages.json_fields import Fields
from ragaudit.ledger.messages.policy import MAX_INSTANTS, Policy
from ragaudit.prover.errors import VerifierMessageRejected
from ragaudit.prover.window.live import Activation

MAX_TIME = 2**53 - 1
MAX_STRATA = 2_000_000
MAX_RECORDS = 2**40


@dataclass(frozen=True)
class Stratum:
    """A stratum of the challenge; ``population`` None stands for all records of a tenant."""

    id: str
    population: tuple[int, ...] | None
    sample: tuple[int, ...]


@dataclass(frozen=True)
class Challenge:
    """What the verifier wants opened; its signature is verified, its sample is not.

    ``receipts`` is how many the receipts list counts.
    """

    final_root: bytes
    final_size: int
    preimage: bytes
    receipts: int
    strata: tuple[Stratum, ...]
    deadline: int


def read_countersignature(
    value: Any, policy: Policy, *, opening_salt: bytes, opening_body: bytes
) -> bytes:
    """Verify a countersignature of this opening; returns the activation chain's anchor.

    Raises:
        VerifierMessageRejected: another window, policy or opening, or not the verifier's.
    """
    f = _fields(
        value,
        "window policy_digest opening_digest terms_digest activation_anchor time",
        "countersignature",
    )
    opening = structure("opening-digest", opening_salt, opening_body)
    _same(f.text("window", 1, 64), policy.window, "window")
    _same(f.hex("policy_digest", DIGEST_BYTES), policy.digest, "policy digest")
    _same(f.hex("opening_digest", DIGEST_BYTES), opening, "opening digest")
    terms = f.hex("terms_digest", DIGEST_BYTES)
    anchor = f.hex("activation_anchor", DIGEST_BYTES)
    time = f.integer("time", 0, MAX_TIME)
    fields = (policy.window, policy.digest, opening, terms, anchor, time)
    _verify(policy, f, "countersignature", *fields)
    return anchor


def read_activation(value: Any, policy: Policy, *, anchor: bytes, number: int) -> Activation:
    """Verify the activation ``number`` of a window against the countersigned anchor."""
    f = _fields(value, "window a preimage covered_size time", "activation")
    _same(f.text("window", 1, 64), policy.window, "window")
    _same(f.integer("a", 1, MAX_INSTANTS), number, "activation")
    preimage = f.hex("preimage", DIGEST_BYTES)
    covered = f.integer("covered_size", 0, min(MAX_TREE_SIZE, MAX_TIME))
    time = f.integer("time", 0, MAX_TIME)
    _verify(policy, f, "activation", policy.window, number, preimage, covered, time)
    _on_chain(policy, anchor, number, preimage)
    return Activation(number, preimage, covered)


def read_challenge(value: Any, policy: Policy, *, anchor: bytes) -> Challenge:
    """Verify signature, receipts list and last preimage of a challenge."""
    names = "window final_root final_size preimage receipts_list strata deadline"
    f = _fields(value, names, "challenge")
    _same(f.text("window", 1, 64), policy.window, "window")
    unsigned = {name: each for name, each in value.items() if name != "signature"}
    digest = sha256(dumps(unsigned)).digest()
    _verify(policy, f, "challenge", policy.window, digest)
    receipts = _read_receipts_list(f.raw("receipts_list"), policy)
    preimage = f.hex("preimage", DIGEST_BYTES)
    _on_chain(policy, anchor, policy.activations, preimage)
    return Challenge(
        final_root=f.hex("final_root", DIGEST_BYTES),
        final_size=f.integer("final_size", 1, MAX_RECORDS),
        preimage=preimage,
        receipts=receipts,
        strata=tuple(
            _read_stratum(item, where) for where, item in f.objects("strata", 1, MAX_STRATA)
        ),
        deadline=f.integer("deadline", 0, MAX_TIME),
    )


def _read_receipts_list(value: Any, policy: Policy) -> int:
    f = _fields(value, "window digest count time", "receipts-list")
    _same(f.text("window", 1, 64), policy.window, "window")
    digest = f.hex("digest", DIGEST_BYTES)
    count, time = f.integer("count", 0, MAX_RECORDS), f.integer("time", 0, MAX_TIME)
    _verify(policy, f, "receipts-list", policy.window, digest, count, time)
    if time >= 1000 * policy.sampling_instant:
        raise VerifierMessageRejected(
            "the receipts list is not older than the sampling instant", where="receipts_list"
        )
    return count


def _read_stratum(value: Any, where: str) -> Stratum:
    f = Fields(value, "id population sample", VerifierMalformed, where)
    bounds = ((0, MAX_RECORDS), 0, MAX_RECORDS)
    population = None if f.raw("population") is None else f.integers("population", *bounds)
    return Stratum(f.text("id", 1, 128), population, f.integers("sample", *bounds))


class VerifierMalformed(MalformedError):
    """A message of the verifier is not in the specified form."""


def _fields(value: Any, names: str, kind: str) -> Fields:
    f = Fields(value, f"format {names} signature", VerifierMalformed, kind)
    f.constant("format", f"ragaudit/v1/{kind}")
    return f


def _verify(policy: Policy, f: Fields, what: str, *fields: Field) -> None:
    try:
        verify(policy.keys.verifier, f.hex("signature", SIGNATURE_BYTES), what, *fields)
    except SignatureRejected as error:
        raise VerifierMessageRejected(error.what, where=what) from error


def _on_chain(policy: Policy, anchor: bytes, number: int, preimage: bytes) -> None:
    try:
        verify_activation_preimage(policy.window, anchor, number, preimage)
    except ChainRejected as error:
        raise VerifierMessageRejected(error.what, where=error.where) from error


def _same(found: object, expected: object, what: str) -> None:
    if found != expected:
        raise VerifierMessageRejected(f"another {what}", where="message of the verifier")
