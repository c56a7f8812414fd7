"""The signed verdict: an in-toto Statement in a DSSE envelope (docs/spec/10-verdict.md §10.3)."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self, TypeVar

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.signing import SIGNATURE_BYTES, PrivateKey, PublicKey, SignatureRejected
from ragaudit.encoding.text import b64_decode, b64_encode, hex_decode
from ragaudit.ledger.messages.items import check_name

__all__ = [
    "EXCEEDED",
    "FAIL",
    "PASS",
    "PAYLOAD_TYPE",
    "REFUSED",
    "RESULTS",
    "WORTHLESS",
    "MalformedVerdict",
    "Predicate",
    "SignedCheck",
    "Status",
    "Verdict",
    "VerdictRejected",
    "key_id",
    "pae",
    "sign_statement",
    "statement",
]

_T = TypeVar("_T")
Json = Mapping[str, Any]

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "https://ragaudit.dev/verdict/v1"

PASS: Final = "PASS"  # noqa: S105 - not a password
FAIL: Final = "FAIL"
EXCEEDED: Final = "EXCEEDED"
REFUSED: Final = "REFUSED"
RESULTS: Final = (PASS, FAIL, EXCEEDED, REFUSED)

WORTHLESS: Final = (
    "WORTHLESS: the provider's randomness in this window was derived from a published seed, for an "
    "experiment. Anyone can predict the noise. This verdict proves nothing about privacy."
)
"""Said on top wherever a verdict of a seeded window is shown."""


class Status(StrEnum):
    """What a check concludes."""

    PASS = "PASS"  # noqa: S105 - not a password
    FAIL = "FAIL"
    EXCEEDED = "EXCEEDED"
    NOT_ESTABLISHED = "NOT ESTABLISHED"
    NOT_RUN = "NOT RUN"


class MalformedVerdict(MalformedError):
    """Not a verdict envelope in its one accepted form."""


class VerdictRejected(RejectedError):
    """The envelope is not signed by the expected key."""


@dataclass(frozen=True, slots=True)
class SignedCheck:
    """What a verdict says of one check.

    Attributes:
        number, id: of the check, as in docs/spec/09-audit.md.
        reason, evidence: for people; only their meaning is specified.
    """

    number: int
    id: str
    status: Status
    reason: str
    evidence: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the check as a JSON object."""
        return {
            "number": self.number,
            "id": self.id,
            "status": str(self.status),
            "reason": self.reason,
            "evidence": list(self.evidence),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the check of a JSON value, the strict inverse of `to_json`.

        Raises:
            MalformedVerdict: anything else.
        """
        match value:
            case {
                "number": int(number),
                "id": str(name),
                "status": str(status),
                "reason": str(reason),
                "evidence": list(evidence),
                **more,
            } if not more and all(isinstance(text, str) for text in evidence):
                if isinstance(number, bool):  # an int to Python, not to JSON
                    raise MalformedVerdict("not a number", where="check")
                if status not in _STATUSES:
                    raise MalformedVerdict("no such status", where="check")
                return cls(number, name, Status(status), reason, tuple(evidence))
        raise MalformedVerdict("not a check result", where="predicate checks")


_STATUSES: Final = frozenset(str(status) for status in Status)


@dataclass(frozen=True, slots=True)
class Predicate:
    """What a verdict states (docs/spec/10-verdict.md §10.3).

    Attributes:
        result: one of RESULTS.
        worthless: the window's randomness was derived from a published seed.
        terms: digest of the verifier's terms, hexadecimal; empty where there are none.
        time: the verifier's clock, Unix milliseconds.
        engine: who checked the arguments, for people.
        epsilon: the table of docs/spec/07-privacy.md §7.4, which the accounting reads; empty where
            nothing is stated.
        sampling, counts, coalition, scope: JSON objects, shown whole by every report.
    """

    window: str
    provider: str
    result: str
    worthless: bool
    terms: str
    time: int
    engine: str
    checks: tuple[SignedCheck, ...]
    epsilon: Json
    sampling: Json
    counts: Json
    coalition: Json
    scope: Json
    not_covered: tuple[str, ...]
    assumptions: tuple[str, ...]

    @property
    def warning(self) -> str:
        """What stands on top wherever the verdict is shown: of a seeded window; else empty."""
        return WORTHLESS if self.worthless else ""

    def to_json(self) -> dict[str, Any]:
        """Return the predicate as a JSON object."""
        members = {name: getattr(self, name) for name in _PREDICATE}
        return members | {
            "checks": [check.to_json() for check in self.checks],
            "not_covered": list(self.not_covered),
            "assumptions": list(self.assumptions),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the predicate of a JSON value, the strict inverse of `to_json`.

        Raises:
            MalformedVerdict: other members, another type, result or status.
        """
        if not isinstance(value, dict) or value.keys() != _PREDICATE.keys():
            raise MalformedVerdict("predicate with other members", expected=", ".join(_PREDICATE))
        for name, kind in _PREDICATE.items():
            # true is an int to Python, not to JSON.
            if not isinstance(value[name], kind) or (kind is int and isinstance(value[name], bool)):
                raise MalformedVerdict("wrong type", where=f"predicate {name}")
        # A result that no version knows must not be read as one that somebody hopes for.
        if value["result"] not in RESULTS:
            raise MalformedVerdict("no such result", expected=", ".join(RESULTS))
        checks = tuple(map(SignedCheck.from_json, value["checks"]))
        for name in ("not_covered", "assumptions"):
            if not all(isinstance(text, str) for text in value[name]):
                raise MalformedVerdict("wrong type", where=f"predicate {name}")
        texts = {name: tuple(value[name]) for name in ("not_covered", "assumptions")}
        return cls(**value | texts | {"checks": checks})


_PREDICATE: Final[Mapping[str, type]] = {
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


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict whose signature was verified: there is no other way to have one.

    Attributes:
        subjects: hexadecimal SHA-256 of each evidence item, by name.
        predicate: what it states.
        key: the public key that the signature verified under.
    """

    subjects: Mapping[str, str]
    predicate: Predicate
    key: PublicKey

    @property
    def result(self) -> str:
        """One of RESULTS."""
        return self.predicate.result

    @staticmethod
    def issue(key: PrivateKey, subjects: Mapping[str, str], predicate: Predicate) -> bytes:
        """Return the signed verdict, a DSSE envelope in canonical JSON.

        Args:
            key: the verdict key.
            subjects: hexadecimal SHA-256 of everything that the procedure saw, by name.
            predicate: what is stated.

        Raises:
            MalformedVerdict: not what a reader would accept.
        """
        return sign_statement(statement(subjects, predicate.to_json()), key)

    @classmethod
    def verify(cls, envelope: bytes, public: PublicKey) -> Self:
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
        return cls(*_read_statement(_loads(body, "payload")), public)

    @staticmethod
    def unverified(envelope: bytes) -> Predicate:
        """Return what an envelope says, whoever signed it: to show, never to rely on.

        Raises:
            MalformedVerdict: as `verify`.
        """
        body, _, _ = _open_envelope(envelope)
        return _read_statement(_loads(body, "payload"))[1]


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


def statement(subjects: Mapping[str, str], predicate: Json) -> dict[str, Any]:
    """Return the in-toto Statement v1 over evidence items, a JSON object.

    Args:
        subjects: hexadecimal SHA-256 of the items, by name.
        predicate: of `Predicate.to_json`.
    """
    return {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": name, "digest": {"sha256": subjects[name]}} for name in sorted(subjects)
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": dict(predicate),
    }


def sign_statement(value: Json, key: PrivateKey) -> bytes:
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


def _read_statement(value: object) -> tuple[dict[str, str], Predicate]:
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
            return _read_subjects(subjects), Predicate.from_json(verdict_predicate)
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


def _loads(data: bytes, where: str) -> object:
    return _decoded(lambda: canonical_json.loads(data), where)


def _decoded(read: Callable[[], _T], where: str) -> _T:
    try:
        return read()
    except MalformedError as error:
        raise MalformedVerdict(error.what, where=where, expected=error.expected) from error
