"""Trust policies, C2SP tlog-policy: which logs and cosigners a reader knows, and which quorum.

    log <vkey> [<url>]
    witness <name> <vkey> [<url>]
    group <name> all|any|<k> <member> ...
    quorum <name>|none

A relying party writes one of its own, which nobody signs; a window's policy may hold one (5.2).
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ragaudit.encoding.errors import RagauditError
from ragaudit.encoding.settings import service_url
from ragaudit.ledger.errors import MalformedTrustPolicy, NoteRejected
from ragaudit.ledger.log.checkpoints import SignedCheckpoint, parse_checkpoint
from ragaudit.ledger.log.cosignatures import Cosignature, CosignerPolicy, verify_cosigned
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, MAX_SIGNATURES, VerifierKey

MAX_POLICY_BYTES = 2**18
MAX_LOGS = MAX_GROUPS = 64  # C2SP asks for 32 of each
MAX_COSIGNERS = MAX_SIGNATURES - 1  # a note has no room for more beside its log's line
NO_QUORUM = "none"

_FORBIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_BLANK = re.compile(r"[ \t]+")
_THRESHOLD = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)
_FORMS = {
    "log": (1, 2, "log <vkey> [<url>]"),
    "witness": (2, 3, "witness <name> <vkey> [<url>]"),
    "group": (3, 2 + MAX_COSIGNERS + MAX_GROUPS, "group <name> all|any|<k> <member> ..."),
    "quorum": (1, 1, "quorum <name>|none"),
}


@dataclass(frozen=True, slots=True)
class TrustedLog:
    """A log whose checkpoints are accepted.

    Attributes:
        key: of type 0x01; its name is the log's origin.
        url: where it is served, or None.
    """

    key: VerifierKey
    url: str | None


@dataclass(frozen=True, slots=True)
class TrustedCosigner:
    """A cosigner that may count.

    Attributes:
        name: in this policy only.
        key: of type 0x04 or 0x06.
        url: its submission prefix, or None.
    """

    name: str
    key: VerifierKey
    url: str | None


@dataclass(frozen=True, slots=True)
class Group:
    """Members of which ``threshold`` together count as one.

    Attributes:
        name: in this policy only.
        threshold: 1..len(members).
        members: names of cosigners and groups that were defined before.
    """

    name: str
    threshold: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuorumFinding:
    """What cosignatures a checkpoint has, against what a policy asks.

    Attributes:
        signed: the checkpoint, which one of the policy's logs signed.
        cosignatures: by the policy's name of the cosigner; each was verified.
        known: how many cosigners the policy knows.
        quorum: name of the quorum, or ``none``.
        time: when the quorum was complete, Unix seconds: the earliest time at which the
            cosignatures up to then made it; None if it is not reached, or none is asked.
    """

    signed: SignedCheckpoint
    cosignatures: Mapping[str, Cosignature]
    known: int
    quorum: str
    time: int | None

    @property
    def reached(self) -> bool:
        """Return whether the quorum is reached, which it is where none is asked."""
        return self.quorum == NO_QUORUM or self.time is not None

    def __str__(self) -> str:
        """Return one line for a person: who cosigned, and whether that is the quorum."""
        names = ", ".join(self.cosignatures) or "nobody"
        if self.quorum == NO_QUORUM:
            state = "no quorum is asked"
        else:
            state = f"quorum {self.quorum} {'reached' if self.reached else 'NOT reached'}"
        return f"{state}: cosigned by {names} ({len(self.cosignatures)} of {self.known})"

    def to_json(self) -> dict[str, Any]:
        """Return the finding for a program to read."""
        return {
            "origin": self.signed.checkpoint.origin,
            "size": self.signed.head.size,
            "quorum": self.quorum,
            "reached": self.reached,
            "time": self.time,
            "known": self.known,
            "cosigned": {name: line.timestamp for name, line in self.cosignatures.items()},
        }

    def demand(self) -> None:
        """Check that the quorum is reached.

        Raises:
            NoteRejected: it is not.
        """
        if not self.reached:
            raise NoteRejected(str(self), where="checkpoint", expected=f"quorum {self.quorum}")


@dataclass(frozen=True)
class TrustPolicy:
    """A tlog-policy file; `parse` is the only way to make one.

    Attributes:
        logs: may be empty: the log is then known from elsewhere.
        cosigners: in the file's order.
        groups: in the file's order, so members come before their group.
        quorum: name of a cosigner or group, or ``none``.
    """

    logs: tuple[TrustedLog, ...]
    cosigners: tuple[TrustedCosigner, ...]
    groups: tuple[Group, ...]
    quorum: str

    @classmethod
    def parse(cls, data: bytes) -> "TrustPolicy":
        """Return the policy of a file.

        Args:
            data: the file, at most 2^18 bytes; each line ends in a newline.

        Raises:
            MalformedTrustPolicy: a line that is not of the format, with its number.
        """
        if len(data) > MAX_POLICY_BYTES:
            raise MalformedTrustPolicy("file too long", expected=f"at most {MAX_POLICY_BYTES}")
        # Octets above 0x7F have no meaning here: kept, whether they are UTF-8 or not.
        *lines, last = data.decode("utf-8", "surrogateescape").split("\n")
        reader = _Reader()
        for number, line in enumerate([*lines, last] if last else lines, 1):
            try:
                if number > len(lines):
                    raise MalformedTrustPolicy("no newline at its end")
                reader.read(line)
            except RagauditError as error:
                raise MalformedTrustPolicy(
                    error.what, where=f"line {number}", expected=error.expected
                ) from error
        if reader.quorum is None:
            raise MalformedTrustPolicy("no quorum line", where="file", expected=_FORMS["quorum"][2])
        return cls(tuple(reader.logs), tuple(reader.cosigners), tuple(reader.groups), reader.quorum)

    def encode(self) -> bytes:
        """Return the canonical text: logs, cosigners, groups with numbers, quorum; no comments."""
        lines = [["log", str(log.key), log.url] for log in self.logs]
        lines += [["witness", each.name, str(each.key), each.url] for each in self.cosigners]
        lines += [["group", g.name, str(g.threshold), *g.members] for g in self.groups]
        lines.append(["quorum", self.quorum])
        text = "".join(" ".join(word for word in line if word) + "\n" for line in lines)
        return text.encode("utf-8", "surrogateescape")

    def named(self) -> "TrustPolicy":
        """Return the policy without logs and URLs: who is trusted, wherever they are asked."""
        cosigners = tuple(replace(each, url=None) for each in self.cosigners)
        return replace(self, logs=(), cosigners=cosigners)

    @property
    def digest(self) -> bytes:
        """Return SHA-256 of the canonical text."""
        return hashlib.sha256(self.encode()).digest()

    @property
    def keys(self) -> tuple[VerifierKey, ...]:
        """Return the cosigners' keys."""
        return tuple(each.key for each in self.cosigners)

    @property
    def least(self) -> int:
        """How many cosigners the smallest quorum has."""
        least = {NO_QUORUM: 0} | {each.name: 1 for each in self.cosigners}
        for group in self.groups:  # members come before their group, and are in one only
            sizes = sorted(least[member] for member in group.members)
            least[group.name] = sum(sizes[: group.threshold])
        return least[self.quorum]

    def judge(self, data: bytes, log_key: VerifierKey | None = None) -> QuorumFinding:
        """Return which cosigners signed a checkpoint, and whether they are the quorum.

        Args:
            data: the note, as received.
            log_key: of the log that is meant, where it is known from elsewhere; then the policy
                must list it, or list no log.

        Raises:
            MalformedNote: not a signed checkpoint.
            NoteRejected: no log of the policy signed it, or a line of a known key is false.
        """
        key = self._log_key(parse_checkpoint(data).checkpoint.origin, log_key)
        # Of any number, so that what is missing can be told; `QuorumFinding.demand` refuses.
        cosigned = verify_cosigned(data, key, CosignerPolicy(self.keys, 0))
        lines = {line.key: line for line in cosigned.cosignatures}
        found = {each.name: lines[each.key] for each in self.cosigners if each.key in lines}
        time = self._time({name: line.timestamp for name, line in found.items()})
        return QuorumFinding(cosigned.signed, found, len(self.cosigners), self.quorum, time)

    def _log_key(self, origin: str, expected: VerifierKey | None) -> VerifierKey:
        known = {log.key.name: log.key for log in self.logs}
        if expected is not None and (not known or known.get(expected.name) == expected):
            return expected
        if expected is not None or origin not in known:
            name = origin if expected is None else expected.name
            raise NoteRejected("a log that the policy does not list", where=name)
        return known[origin]

    def _time(self, times: Mapping[str, int]) -> int | None:
        """Return the least time at which the quorum's members had signed."""
        known = dict(times)
        for group in self.groups:
            signed = sorted(known[member] for member in group.members if member in known)
            if len(signed) >= group.threshold:
                known[group.name] = signed[group.threshold - 1]
        return known.get(self.quorum)


class _Reader:
    """The definitions of the lines read so far."""

    def __init__(self) -> None:
        self.logs: list[TrustedLog] = []
        self.cosigners: list[TrustedCosigner] = []
        self.groups: list[Group] = []
        self.quorum: str | None = None
        self._names: set[str] = set()
        self._members: set[str] = set()
        self._keys: set[bytes] = set()

    def read(self, line: str) -> None:
        if _FORBIDDEN.search(line):
            raise MalformedTrustPolicy("a control character", expected="tabs and spaces only")
        text = line.strip(" \t")
        if not text or text.startswith("#"):
            return
        keyword, *words = _BLANK.split(text)
        if keyword not in _FORMS:
            raise MalformedTrustPolicy("unknown keyword", expected=", ".join(_FORMS))
        least, most, form = _FORMS[keyword]
        if not least <= len(words) <= most:
            raise MalformedTrustPolicy(f"{len(words)} words after {keyword}", expected=form)
        getattr(self, f"_{keyword}")(*words)

    def _log(self, vkey: str, url: str | None = None) -> None:
        key = self._key(vkey)
        if key.algorithm != ED25519:
            raise MalformedTrustPolicy("not a log's key", expected="type 0x01")
        # A checkpoint names its log by the origin alone.
        if any(log.key.name == key.name for log in self.logs):
            raise MalformedTrustPolicy("two keys of one log", expected="one line for each origin")
        self.logs.append(TrustedLog(key, _url(url)))
        _limit(self.logs, MAX_LOGS, "logs")

    def _witness(self, name: str, vkey: str, url: str | None = None) -> None:
        self._define(name)
        key = self._key(vkey)
        if key.algorithm == ED25519:
            raise MalformedTrustPolicy(
                "not a cosigner's key", expected=f"type {COSIGNATURE_V1:#04x} or 0x06"
            )
        self.cosigners.append(TrustedCosigner(name, key, _url(url)))
        _limit(self.cosigners, MAX_COSIGNERS, "cosigners")

    def _group(self, name: str, threshold: str, *members: str) -> None:
        # Before the group's own name is: no group is a member of itself.
        for member in members:
            self._used(member)
            if member in self._members:
                raise MalformedTrustPolicy("a member twice", expected="each name in one group")
            self._members.add(member)
        self._define(name)
        count = {"all": len(members), "any": 1}.get(threshold)
        if count is None and _THRESHOLD.fullmatch(threshold):
            count = int(threshold)
        if count is None or count > len(members):
            raise MalformedTrustPolicy(
                "not a threshold", expected=f"all, any, or 1..{len(members)}"
            )
        self.groups.append(Group(name, count, members))
        _limit(self.groups, MAX_GROUPS, "groups")

    def _quorum(self, name: str) -> None:
        if self.quorum is not None:
            raise MalformedTrustPolicy("a second quorum", expected="exactly one quorum line")
        if name != NO_QUORUM:
            self._used(name)
        self.quorum = name

    def _key(self, vkey: str) -> VerifierKey:
        key = VerifierKey.parse(vkey)
        # Also of a log among cosigners: a log that vouches for itself vouches for nothing.
        if key.public.raw in self._keys:
            raise MalformedTrustPolicy("a public key twice", expected="one line for each key")
        self._keys.add(key.public.raw)
        return key

    def _define(self, name: str) -> None:
        if name == NO_QUORUM or name in self._names:
            raise MalformedTrustPolicy("a name that is taken", expected="another name")
        self._names.add(name)

    def _used(self, name: str) -> None:
        if name not in self._names:
            raise MalformedTrustPolicy(
                "a name that no line before defines", expected="a witness or group"
            )


def _limit(
    defined: list[TrustedLog] | list[TrustedCosigner] | list[Group], most: int, what: str
) -> None:
    if len(defined) > most:
        raise MalformedTrustPolicy(f"too many {what}", expected=f"at most {most}")


def _url(url: str | None) -> str | None:
    if url is not None:
        service_url(url)
    return url
