"""The signed verdict: what checks conclude, and the two claims that follow (docs/spec 10.3, 10.6).

Integrity: answers came from the committed indexes alone, and no query is missing from the log.
Privacy: the noise that was promised was added. A verdict states each with a result of its own, and
both follow from the statuses of its checks: whoever reads a verdict can derive them again. It is an
in-toto Statement in a DSSE envelope.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Self, TypeAlias, TypeVar

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.messages.items import check_name
from ragaudit.ledger.messages.kernel import (
    MAX_TIME,
    OBJECT,
    OMITTED,
    Choice,
    Converted,
    Integer,
    Items,
    Message,
    Plain,
)
from ragaudit.ledger.messages.signed import (
    STATEMENT_TYPE,
    Envelope,
    EnvelopeRejected,
    in_toto,
)
from ragaudit.ledger.messages.signed_results import References

PASS: Final = "PASS"  # noqa: S105 - not a password
FAIL: Final = "FAIL"
EXCEEDED: Final = "EXCEEDED"
REFUSED: Final = "REFUSED"
CONDITIONAL: Final = "CONDITIONAL"
RESULTS: Final = (PASS, FAIL, EXCEEDED, REFUSED, CONDITIONAL)
NOT_CLAIMED: Final = "NOT CLAIMED"
"""Result of the claim of privacy where the policy adds no noise."""


class Status(StrEnum):
    """What a check concludes."""

    PASS = "PASS"  # noqa: S105 - not a password
    FAIL = "FAIL"
    EXCEEDED = "EXCEEDED"
    NOT_ESTABLISHED = "NOT ESTABLISHED"
    NOT_RUN = "NOT RUN"
    NOT_APPLICABLE = "NOT APPLICABLE"


PRIVACY_CHECKS: Final = ("accounting", "seed", "coalition", "epsilon")
"""The checks that a claim of privacy rests on, beside all others."""

MAY_BE_OPEN: Final = ("embedding", "cosigners", "time-stamps", "rows")
"""Checks that may leave open what they are about, and say so, in a window with integrity."""

CONDITIONS: Final = ("generator", "replay")
"""Checks that a claim of privacy is conditional on where they leave open what they are about."""

_STATEMENTS: Final = {
    ("integrity", PASS): (
        "Every answer that was checked is what the committed index of the account's own tenant "
        "gives for what was asked, but for rows that its receipt names as withheld, and the log "
        "that holds them is complete; whether that index holds the documents as their owner gave "
        "them, and whether withheld rows had to be, is the provider's word, which no check here "
        "compares with the documents."
    ),
    ("integrity", FAIL): (
        "That answers came from the committed indexes alone, and that the log is complete, is not "
        "established."
    ),
    ("integrity", REFUSED): (
        "The verifier refused to countersign the opening of this window; nothing in it is audited."
    ),
    ("privacy", PASS): (
        "The noise that was promised before the window was added to every answer that was "
        "checked; epsilon is stated in this verdict."
    ),
    ("privacy", EXCEEDED): (
        "The noise was added, but more accounts look as if they act together than the policy "
        "plans for; epsilon is restated for their number."
    ),
    ("privacy", CONDITIONAL): (
        "Charges and budgets of the generation channel are proven. That its answers used only "
        "charged rows, the votes, the noise, and the tokens or keywords are the provider's word, "
        "and the channel's epsilon is conditional on it."
    ),
    ("privacy", FAIL): "No guarantee of privacy follows from this window.",
    ("privacy", REFUSED): "No guarantee of privacy follows from this window.",
    ("privacy", NOT_CLAIMED): ("No epsilon is claimed: the policy of this window adds no noise."),
}

_OPEN: Final = {
    "embedding": (
        "That query vectors are those of the texts asked is not established (check embedding)."
    ),
    "cosigners": (
        "That the quorum of further cosigners saw the log in time is not established (check "
        "cosigners)."
    ),
    "time-stamps": (
        "That the log existed by the times that were promised is not established (check "
        "time-stamps)."
    ),
    "rows": (
        "That all sampled rows of the indexes hold the vectors of their texts is not established "
        "(check rows)."
    ),
}
"""What the statement of integrity says further of each of `MAY_BE_OPEN` that is left open."""

_VOID: Final = (
    "Of the charges {} are void: documents paid for them as for answers, and none was given."
)


@dataclass(frozen=True, slots=True)
class Claims:
    """The results of the two claims.

    Attributes:
        integrity: PASS, FAIL or REFUSED.
        privacy: PASS, FAIL, EXCEEDED, CONDITIONAL, REFUSED or NOT CLAIMED.
        open: ids of the checks, in the order of `MAY_BE_OPEN` and `CONDITIONS`, that leave open
            what they are about in a window with integrity.
        voids: charges of the generation channel that have no answer, in a window with integrity.
    """

    integrity: str
    privacy: str
    open: tuple[str, ...] = ()
    voids: int = 0

    @classmethod
    def of(
        cls, statuses: Mapping[str, Status], *, refused: bool = False, voids: object = None
    ) -> Self:
        """Return the claims that follow from the statuses of checks.

        Args:
            statuses: by the check's id.
            refused: whether the opening was refused.
            voids: the verdict's count of void charges; anything but a number above 0 is none.
        """
        private = [status for name, status in statuses.items() if name in PRIVACY_CHECKS]
        unclaimed = bool(private) and all(one is Status.NOT_APPLICABLE for one in private)
        if refused:
            return cls(REFUSED, NOT_CLAIMED if unclaimed else REFUSED)
        others = {name: one for name, one in statuses.items() if name not in PRIVACY_CHECKS}
        sound = all(_sound(name, one, unclaimed) for name, one in others.items())
        # Where integrity fails nothing is established, and no single check is said to be open.
        if not sound:
            return cls(FAIL, NOT_CLAIMED if unclaimed else FAIL)
        left = _left(lambda name: statuses.get(name) is Status.NOT_ESTABLISHED)
        if unclaimed:
            return cls(PASS, NOT_CLAIMED, left)
        void = voids if type(voids) is int and voids > 0 else 0
        privacy = _privacy(private)
        conditional = privacy == PASS and any(name in CONDITIONS for name in left)
        return cls(PASS, CONDITIONAL if conditional else privacy, left, void)

    @property
    def result(self) -> str:
        """The result of the whole verdict, one of RESULTS."""
        if self.integrity == REFUSED:
            return REFUSED
        if FAIL in (self.integrity, self.privacy):
            return FAIL
        return self.privacy if self.privacy in (EXCEEDED, CONDITIONAL) else PASS

    @property
    def unclaimed(self) -> bool:
        """Whether no privacy is claimed."""
        return self.privacy == NOT_CLAIMED

    @property
    def results(self) -> dict[str, str]:
        """The two results by the name of the claim."""
        return {"integrity": self.integrity, "privacy": self.privacy}

    @property
    def statements(self) -> tuple[str, str]:
        """What the two results mean, in the words of §10.6: of integrity and of privacy.

        A result never hides what is left open beside it: each has its own sentence.
        """
        left = [_OPEN[name] for name in self.open if name in _OPEN]
        left += [_VOID.format(self.voids)] if self.voids else []
        integrity = " ".join((_STATEMENTS["integrity", self.integrity], *left))
        privacy = _STATEMENTS["privacy", self.privacy]
        if self.privacy == EXCEEDED and self.conditional:
            privacy = f"{privacy} {_STATEMENTS['privacy', CONDITIONAL]}"
        return integrity, privacy

    @property
    def conditional(self) -> bool:
        """Whether privacy is conditional on answers that were not computed again."""
        return any(name in CONDITIONS for name in self.open)

    def to_json(self) -> dict[str, Any]:
        """Return the member ``claims``."""
        integrity, privacy = self.statements
        found: dict[str, Any] = {
            name: {
                "result": result,
                "statement": statement,
                "open": [check for check in self.open if (check in CONDITIONS) == of_privacy],
            }
            for name, result, statement, of_privacy in (
                ("integrity", self.integrity, integrity, False),
                ("privacy", self.privacy, privacy, True),
            )
        }
        if self.voids:
            found["integrity"]["voids"] = self.voids
        return found

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the claims of a JSON value, the strict inverse of `to_json`.

        Raises:
            MalformedError: other members, results or statements.
        """
        match value:
            case {
                "integrity": {"result": str(integrity), "open": list(first), **more},
                "privacy": {"result": str(privacy), "open": list(second)},
            }:
                voids, left = more.get("voids", 0), _left(lambda name: name in (*first, *second))
                if type(voids) is not int or voids < 0:
                    raise MalformedError("not a number of charges", where="claims")
                claims = cls(integrity, privacy, left, voids)
                # A statement of another result would be what a reader believes.
                known = ("integrity", integrity) in _STATEMENTS and (
                    "privacy",
                    privacy,
                ) in _STATEMENTS
                if known and value == claims.to_json():
                    return claims
        raise MalformedError("not the claims of a verdict", where="claims")


def _left(is_open: Callable[[str], bool]) -> tuple[str, ...]:
    return tuple(name for name in (*MAY_BE_OPEN, *CONDITIONS) if is_open(name))


def _sound(name: str, status: Status, unclaimed: bool) -> bool:
    if status is Status.NOT_ESTABLISHED:
        return name in (*MAY_BE_OPEN, *CONDITIONS)
    # Without noise there is nothing to promise; anywhere else a rule that is not applied is broken.
    if status is Status.NOT_APPLICABLE:
        return name == "promises" and unclaimed
    return status is Status.PASS


def _privacy(statuses: list[Status]) -> str:
    if not statuses or not set(statuses) <= {Status.PASS, Status.EXCEEDED}:
        return FAIL
    return EXCEEDED if Status.EXCEEDED in statuses else PASS


_T = TypeVar("_T")
Json = Mapping[str, Any]

WORTHLESS: Final = (
    "WORTHLESS: the provider's randomness in this window was derived from a published seed, for an "
    "experiment. Anyone can predict the noise. This verdict proves nothing about privacy."
)
"""Said on top wherever a verdict of a seeded window is shown."""


class MalformedVerdict(MalformedError):
    """Not a verdict envelope in its one accepted form."""


_LIST: Final = Plain(list, "array", "a list")
_REFERENCES: Final = Converted(_LIST, References.from_json, References.to_json)
_Object: TypeAlias = Annotated[Json, OBJECT]
_List: TypeAlias = Annotated[Sequence[Json], _LIST]
_References: TypeAlias = Annotated[References, _REFERENCES]
_Text: TypeAlias = Annotated[str, Plain(str, "string", "a text", "text")]
_Texts: TypeAlias = Annotated[tuple[_Text, ...], Items(0, MAX_TIME)]
_Integer: TypeAlias = Annotated[int, Integer(-MAX_TIME, MAX_TIME)]


class SignedCheck(Message):
    """What a verdict says of one check.

    Attributes:
        number, id: of the check, as in docs/spec/09-audit.md.
        reason, evidence: for people; only their meaning is specified.
    """

    ERROR: ClassVar[type[MalformedError]] = MalformedVerdict

    number: _Integer
    id: _Text
    status: Annotated[Status, Converted(Choice(*map(str, Status)), Status, str)]
    reason: _Text
    evidence: _Texts


class Predicate(Message, where="predicate"):
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
        claims: integrity and privacy, of which the result follows.
        attested: what third parties say of the log (10.3), a JSON object; None where the policy
            asks none.
        generation: what the generation channel costs (10.10), a JSON object; None without it.
        test_results: signed results that others brought (10.11); None where nobody did. They are
            no part of what is stated here.
        withheld: rows that answers withheld, by account (10.12), a JSON object; None with noise.
        overlaps: windows at the same time (10.13), a JSON object; None where there are none.
        documents: how many rows and documents there are, by tenant (10.14), JSON objects; None
            where owners of documents check nothing.
    """

    ERROR: ClassVar[type[MalformedError]] = MalformedVerdict

    window: _Text
    provider: _Text
    # A result that nobody knows must not be read as one that somebody hopes for.
    result: Annotated[str, Choice(*RESULTS)]
    worthless: bool
    terms: _Text
    time: _Integer
    engine: _Text
    checks: Annotated[tuple[SignedCheck, ...], Items(0, MAX_TIME)]
    epsilon: _Object
    sampling: _Object
    counts: _Object
    coalition: _Object
    scope: _Object
    not_covered: _Texts
    assumptions: _Texts
    claims: Claims
    attested: Annotated[_Object | None, OMITTED] = None
    generation: Annotated[_Object | None, OMITTED] = None
    test_results: Annotated[_References | None, OMITTED] = None
    withheld: Annotated[_Object | None, OMITTED] = None
    overlaps: Annotated[_Object | None, OMITTED] = None
    documents: Annotated[_List | None, OMITTED] = None

    @property
    def warning(self) -> str:
        """What stands on top wherever the verdict is shown: of a seeded window; else empty."""
        return WORTHLESS if self.worthless else ""

    def _check(self) -> None:
        # A refusal is signed before anybody could bring one.
        if self.test_results is not None and self.result == REFUSED:
            raise MalformedError("test results of a refused window", where="test_results")
        statuses = {check.id: check.status for check in self.checks}
        # Whoever shows a verdict shows its claims: none may promise what the checks do not.
        refused, voids = self.result == REFUSED, self.counts.get("voids")
        expected = Claims.of(statuses, refused=refused, voids=voids)
        if self.claims != expected or len(statuses) < len(self.checks):
            raise MalformedError("claims that do not follow from the checks")
        if self.result != expected.result:
            raise MalformedError("a result that does not follow from the claims")


def decoded(read: Callable[[], _T], where: str) -> _T:
    """Return what ``read`` gives; what it finds malformed is a malformed verdict.

    Raises:
        MalformedVerdict: naming ``where``.
    """
    try:
        return read()
    except MalformedError as error:
        raise MalformedVerdict(error.what, where=where, expected=error.expected) from error


PREDICATE_TYPE: Final = "https://ragaudit.dev/verdict/v1"


class VerdictRejected(RejectedError):
    """The envelope is not signed by the expected key."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict whose signature was verified: there is no other way to have one.

    Attributes:
        subjects: hexadecimal SHA-256 of each evidence item, by name.
        predicate: what it states.
        key: the public key that the signature verified under.
        digest: hexadecimal SHA-256 of the envelope: what names this verdict elsewhere.
    """

    subjects: Mapping[str, str]
    predicate: Predicate
    key: PublicKey
    digest: str

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
        opened = _envelope(envelope)
        try:
            opened.verify(public)
        except EnvelopeRejected as error:
            raise VerdictRejected(error.what, where=error.where, expected=error.expected) from error
        subjects, predicate = _read_statement(_loads(opened.body, "payload"))
        return cls(subjects, predicate, public, hashlib.sha256(envelope).hexdigest())

    @staticmethod
    def unverified(envelope: bytes) -> Predicate:
        """Return what an envelope says, whoever signed it: to show, never to rely on.

        Raises:
            MalformedVerdict: as `verify`.
        """
        return _read_statement(_loads(_envelope(envelope).body, "payload"))[1]


def statement(subjects: Mapping[str, str], predicate: Json) -> dict[str, Any]:
    """Return the in-toto Statement v1 over evidence items, a JSON object.

    Args:
        subjects: hexadecimal SHA-256 of the items, by name.
        predicate: of `Predicate.to_json`.
    """
    return in_toto(PREDICATE_TYPE, subjects, predicate)


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
    return Envelope.seal(canonical_json.dumps(value), key)


def _envelope(data: bytes) -> Envelope:
    return decoded(lambda: Envelope.parse(data), "envelope")


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
            return read_subjects(subjects), Predicate.from_json(verdict_predicate)
    raise MalformedVerdict("not an in-toto Statement", expected=STATEMENT_TYPE)


def read_subjects(subjects: list[object]) -> dict[str, str]:
    """Return the subjects of a statement: hexadecimal SHA-256 by the name of the evidence item.

    Raises:
        MalformedVerdict: not evidence items with one SHA-256 each, by rising name.
    """
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
    decoded(lambda: check_name(name), "subject")
    decoded(lambda: hex_decode(digest, 32), "subject digest")


def _loads(data: bytes, where: str) -> object:
    return decoded(lambda: canonical_json.loads(data), where)
