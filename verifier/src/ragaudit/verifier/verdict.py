"""The signed verdict: an in-toto Statement in a DSSE envelope (docs/spec/10-verdict.md §10.3)."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.signing import SIGNATURE_BYTES, PrivateKey, PublicKey, SignatureRejected
from ragaudit.encoding.text import b64_decode, b64_encode, hex_decode
from ragaudit.privacy.accounting.table import EpsilonTable
from ragaudit.verifier.evidence import check_name
from ragaudit.verifier.procedure.framework import RESULTS, Outcome, Status
from ragaudit.verifier.procedure.members import WORTHLESS

_T = TypeVar("_T")
_STATUSES: Final = frozenset(str(status) for status in Status)

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "https://ragaudit.dev/verdict/v1"

_PREDICATE: Final[Mapping[str, type | tuple[type, ...]]] = {
    "window": str,
    "provider": str,
    "result": str,
    "worthless": bool,
    "terms": str,
    "time": int,
    "engine": str,
    "checks": list,
    "epsilon": dict,
    "sampling": dict,
    "counts": dict,
    "coalition": dict,
    "scope": dict,
    "not_covered": list,
    "assumptions": list,
}


class MalformedVerdict(MalformedError):
    """Not a verdict envelope in its one accepted form."""


class VerdictRejected(RejectedError):
    """The envelope is not signed by the expected key."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict that was signed.

    Attributes:
        subjects: hexadecimal SHA-256 of each evidence item, by name.
        predicate: of spec 10.3.
        key: the public key that the signature verified under.
    """

    subjects: Mapping[str, str]
    predicate: Mapping[str, Any]
    key: PublicKey

    @property
    def result(self) -> str:
        """One of RESULTS."""
        return str(self.predicate["result"])

    @property
    def warning(self) -> str:
        """What stands on top wherever the verdict is shown: of a seeded window; else empty."""
        return WORTHLESS if self.predicate["worthless"] else ""

    @property
    def terms(self) -> str:
        """Digest of the verifier's terms, hexadecimal; empty where there are none."""
        return str(self.predicate["terms"])

    @property
    def epsilon(self) -> EpsilonTable | None:
        """The signed epsilon table; None where what is signed is not one (spec 7.4)."""
        try:
            return EpsilonTable.from_json(self.predicate["epsilon"])
        except MalformedError:
            return None

    @property
    def checks(self) -> list[tuple[int, str, str]]:
        """(number, id, status) of every check."""
        return [(one["number"], one["id"], one["status"]) for one in self.predicate["checks"]]


def pae(payload_type: str, body: bytes) -> bytes:
    """Return the DSSE v1 pre-authentication encoding: what is signed.

    Args:
        payload_type: of the envelope; signed too, so that no other document is taken for it.
        body: the payload.
    """
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(body), body)


def key_id(public: PublicKey) -> str:
    """Return the ``keyid`` of a key: hexadecimal SHA-256 of its 32 bytes."""
    return hashlib.sha256(public.raw).hexdigest()


def predicate(outcome: Outcome, *, time: int) -> dict[str, Any]:
    """Return the predicate of an outcome (spec 10.3), a JSON object.

    Args:
        outcome: of the whole procedure, or of a refusal.
        time: the verifier's clock, Unix milliseconds.
    """
    checks = [
        {
            "number": check.number,
            "id": check.id,
            "status": str(check.status),
            "reason": check.reason,
            "evidence": list(check.evidence),
        }
        for check in outcome.checks
    ]
    return {
        "window": outcome.window,
        "provider": outcome.provider,
        "result": outcome.result,
        "worthless": outcome.worthless,
        "terms": outcome.terms,
        "time": time,
        "engine": outcome.engine,
        "checks": checks,
        "epsilon": {} if outcome.epsilon is None else outcome.epsilon.to_json(),
        "sampling": outcome.sampling,
        "counts": outcome.counts,
        "coalition": outcome.coalition,
        "scope": outcome.scope,
        "not_covered": list(outcome.not_covered),
        "assumptions": list(outcome.assumptions),
    }


def statement(digests: Mapping[str, str], verdict_predicate: Mapping[str, Any]) -> dict[str, Any]:
    """Return the in-toto Statement v1 over evidence items, a JSON object.

    Args:
        digests: hexadecimal SHA-256 of the items, by name.
        verdict_predicate: of spec 10.3.
    """
    return {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": name, "digest": {"sha256": digests[name]}} for name in sorted(digests)
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": dict(verdict_predicate),
    }


def sign_statement(value: Mapping[str, Any], key: PrivateKey) -> bytes:
    """Return the DSSE envelope of a statement, canonical JSON.

    Args:
        value: of :func:`statement`.
        key: the verdict key.

    Raises:
        MalformedVerdict: the statement is not one that a reader would accept.
    """
    # A verifier never signs what nobody could verify.
    _read_statement(value)
    body = canonical_json.dumps(value)
    signature = key.sign_raw(pae(PAYLOAD_TYPE, body))
    envelope = {
        "payload": b64_encode(body),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"keyid": key_id(key.public), "sig": b64_encode(signature)}],
    }
    return canonical_json.dumps(envelope)


def sign_verdict(
    outcome: Outcome, digests: Mapping[str, str], key: PrivateKey, *, time: int
) -> bytes:
    """Return the signed verdict of ``outcome``, a DSSE envelope.

    Args:
        outcome: of the procedure.
        digests: `Evidence.digests` of everything the procedure saw.
        key: the verdict key.
        time: the verifier's clock, Unix milliseconds.

    Raises:
        MalformedVerdict: the outcome has no result.
    """
    return sign_statement(statement(digests, predicate(outcome, time=time)), key)


def verify_verdict(envelope: bytes, public: PublicKey) -> Verdict:
    """Return the verdict in ``envelope``, signed by ``public``.

    Args:
        envelope: bytes from anywhere.
        public: the expected key, from the caller; the envelope's ``keyid`` must be its, and
            decides nothing.

    Raises:
        MalformedVerdict: not an envelope, statement or predicate in its one accepted form.
        VerdictRejected: signed by another key, or not at all.
    """
    body, signed_by, signature = _open_envelope(envelope)
    # Said apart from a bad signature: the usual cause is a key of another verifier.
    if signed_by != key_id(public):
        raise VerdictRejected("signed by another key", where="keyid", expected=key_id(public))
    try:
        public.verify_raw(signature, pae(PAYLOAD_TYPE, body))
    except SignatureRejected as error:
        raise VerdictRejected(error.what, where="verdict") from error
    return Verdict(*_read_statement(_loads(body, "payload")), public)


def _open_envelope(envelope: bytes) -> tuple[bytes, str, bytes]:
    match _loads(envelope, "envelope"):
        case {
            "payload": str(payload),
            "payloadType": str(kind),
            "signatures": [{"keyid": str(signed_by), "sig": str(sig), **other}],
            **more,
        } if not other and not more:
            if kind != PAYLOAD_TYPE:
                raise MalformedVerdict("another payload type", expected=PAYLOAD_TYPE)
            return (
                _decoded(lambda: b64_decode(payload), "payload"),
                signed_by,
                _decoded(lambda: b64_decode(sig, SIGNATURE_BYTES), "signature"),
            )
    raise MalformedVerdict("not a DSSE envelope with one signature")


def _read_statement(value: object) -> tuple[dict[str, str], dict[str, Any]]:
    """(subjects, predicate) of a statement; MalformedVerdict for anything else."""
    match value:
        case {
            "_type": str(kind),
            "subject": list(subjects),
            "predicateType": str(predicate_type),
            "predicate": dict(verdict_predicate),
            **more,
        } if not more:
            if (kind, predicate_type) != (STATEMENT_TYPE, PREDICATE_TYPE):
                raise MalformedVerdict("another statement or predicate type")
            _check_predicate(verdict_predicate)
            return _read_subjects(subjects), verdict_predicate
    raise MalformedVerdict("not an in-toto Statement", expected=STATEMENT_TYPE)


def _read_subjects(subjects: list[object]) -> dict[str, str]:
    found: dict[str, str] = {}
    last = ""
    for subject in subjects:
        match subject:
            case {"name": str(name), "digest": {"sha256": str(digest), **other}, **more} if not (
                other or more
            ):
                _check_subject(name, digest)
                # One order, no repetitions: one set of items has one statement.
                if name <= last:
                    raise MalformedVerdict("subjects repeat or are out of order", where=name)
                found[name], last = digest, name
            case _:
                raise MalformedVerdict("not a subject", expected="name and sha256 digest")
    return found


def _check_subject(name: str, digest: str) -> None:
    _decoded(lambda: check_name(name), "subject")
    _decoded(lambda: hex_decode(digest, 32), "subject digest")


def _check_predicate(value: Mapping[str, Any]) -> None:
    if value.keys() != _PREDICATE.keys():
        raise MalformedVerdict("predicate with other members", expected=", ".join(_PREDICATE))
    for name, kind in _PREDICATE.items():
        # true is an int to Python, not to JSON.
        if not isinstance(value[name], kind) or (kind is int and isinstance(value[name], bool)):
            raise MalformedVerdict("wrong type", where=f"predicate {name}")
    # A result that no version knows must not be read as one that somebody hopes for.
    if value["result"] not in RESULTS:
        raise MalformedVerdict("no such result", expected=", ".join(RESULTS))
    for check in value["checks"]:
        _check_check(check)
    for name in ("not_covered", "assumptions"):
        if not all(isinstance(text, str) for text in value[name]):
            raise MalformedVerdict("wrong type", where=f"predicate {name}")


def _check_check(value: object) -> None:
    match value:
        case {
            "number": int(),
            "id": str(),
            "status": str(status),
            "reason": str(),
            "evidence": list(evidence),
            **more,
        } if not more and all(isinstance(text, str) for text in evidence):
            if status not in _STATUSES:
                raise MalformedVerdict("no such status", where="check")
        case _:
            raise MalformedVerdict("not a check result", where="predicate checks")


def _loads(data: bytes, where: str) -> object:
    return _decoded(lambda: canonical_json.loads(data), where)


def _decoded(read: Callable[[], _T], where: str) -> _T:
    try:
        return read()
    except MalformedError as error:
        raise MalformedVerdict(error.what, where=where, expected=error.expected) from error
