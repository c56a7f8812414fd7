"""Windows whose policies name outsiders: further cosigners, time stamp authorities, a beacon."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from ragaudit.encoding import canonical_json
from ragaudit.lab.scenario.integrity import IntegrityWindow, PrivateWindow
from ragaudit.lab.scenario.policy import START, THIRD_PARTIES, third_party
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import SigningKey, parse_note
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.beacon import BeaconChain, BeaconRound
from ragaudit.ledger.messages.evidence import TimeStamp, TimeStamps
from ragaudit.ledger.messages.policy_terms import BeaconTerms
from ragaudit.verifier.reference import pairing

# --- further cosigners (docs/spec/05-records.md §5.2) --------------------------------------------


def trust_text(threshold: int = 2, party: Callable[[str], SigningKey] = third_party) -> str:
    """Return a trust policy of three, in its canonical text.

    Args:
        threshold: of the quorum, 1..3.
        party: gives the key of each by its name.
    """
    lines = [f"witness {name} {party(name).verifier_key}" for name in THIRD_PARTIES]
    group = f"group them {threshold} {' '.join(THIRD_PARTIES)}"
    return "\n".join([*lines, group, "quorum them", ""])


class CosignedWindow(IntegrityWindow):
    """`IntegrityWindow` with three further cosigners, of whom two must stand behind the log."""

    demand = "required"

    def document(self, keys: dict[str, str | None], changes: dict[str, Any]) -> dict[str, Any]:
        asked = {"demand": self.demand, "trust": trust_text(party=self.party)}
        return {**super().document(keys, changes), "cosigners": asked}

    def party(self, name: str) -> SigningKey:
        """Return the key of a further cosigner: a hook for cheats."""
        return third_party(name)

    def cosigned_by(self, size: int, time: int) -> dict[str, int]:
        """Return who cosigns a checkpoint, and when: a hook for cheats.

        Args:
            size: of the checkpoint, in entries.
            time: at which the verifier cosigned it, Unix seconds.
        """
        return {"one": time + 1, "three": time + 2}

    def further(self) -> list[str]:
        """Return the notes with the lines of the log and of the further cosigners."""
        notes = []
        for size, time, text in self.checkpoints:
            given = self.cosigned_by(size, time)
            if not given:
                continue
            note = parse_note(text.encode())
            own = note.signature_of(self.log_key.verifier_key)
            assert own is not None
            lines = [cosign(note.text, self.party(name), at) for name, at in given.items()]
            bare = type(note)(note.text, (own,))
            notes.append(bare.with_signatures(lines).encode().decode())
        return notes

    def items(self) -> dict[str, bytes]:
        found = super().items()
        return {**found, names.COSIGNED: canonical_json.dumps(self.further())}


# --- time stamps ---------------------------------------------------------------------------------

_FROM, _UNTIL = datetime(2020, 1, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC)
_SEQUENCE, _SET, _INTEGER, _OCTETS, _TIME = 0x30, 0x31, 0x02, 0x04, 0x18
_EXPLICIT_0: Final = 0xA0


def _der(tag: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    length = len(body)
    if length < 0x80:
        return bytes([tag, length]) + body
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(size)]) + size + body


def _integer(value: int) -> bytes:
    return _der(_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _oid(text: str) -> bytes:
    first, second, *rest = map(int, text.split("."))
    body = bytes([40 * first + second])
    for arc in rest:
        digits = [arc & 0x7F]
        while arc := arc >> 7:
            digits.append(0x80 | arc & 0x7F)
        body += bytes(reversed(digits))
    return _der(0x06, body)


_SHA256 = _der(_SEQUENCE, _oid("2.16.840.1.101.3.4.2.1"))
_ECDSA = _der(_SEQUENCE, _oid("1.2.840.10045.4.3.2"))
_TST_INFO = _oid("1.2.840.113549.1.9.16.1.4")


class Authority:
    """A root and a certificate for time stamps under it; `stamp` says any time.

    Attributes:
        roots: PEM.
    """

    def __init__(self, name: str) -> None:
        """Make keys and certificates.

        Args:
            name: common name of the root.
        """
        root, self._key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        basic = x509.BasicConstraints(ca=True, path_length=None)
        made = _certificate(issuer, issuer, root.public_key()).add_extension(basic, critical=True)
        self.roots = made.sign(root, hashes.SHA256()).public_bytes(Encoding.PEM)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name}, stamps")])
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING])
        own = _certificate(issuer, subject, self._key.public_key())
        self._certificate = own.add_extension(usage, critical=True).sign(root, hashes.SHA256())

    def answer(self, query: bytes, time: int) -> bytes:
        """Return the answer to a request of RFC 3161, which is not checked.

        Args:
            query: DER, with a SHA-256 and a nonce.
            time: Unix seconds.
        """
        at = query.index(b"\x04\x20") + 2
        nonce = query[at + 32 : at + 34 + query[at + 33]]
        return self._response(query[at : at + 32], time, nonce)

    def stamp(self, data: bytes, time: int) -> bytes:
        """Return the answer of RFC 3161 that stamps data.

        Args:
            data: what existed.
            time: Unix seconds.
        """
        return self._response(sha256(data).digest(), time)

    def _response(self, digest: bytes, time: int, nonce: bytes = b"") -> bytes:
        moment = datetime.fromtimestamp(time, UTC).strftime("%Y%m%d%H%M%SZ").encode()
        imprint = _der(_SEQUENCE, _SHA256, _der(_OCTETS, digest))
        info = _der(
            _SEQUENCE, _integer(1), _oid("1.2.3.4.1"), imprint, _integer(7), _der(_TIME, moment),
            nonce,
        )  # fmt: skip
        own = self._certificate.public_bytes(Encoding.DER)
        hashed = _der(_SEQUENCE, _der(_SEQUENCE, _der(_OCTETS, sha256(own).digest())))
        attributes = b"".join(
            sorted(
                [
                    _attribute("1.2.840.113549.1.9.3", _TST_INFO),
                    _attribute("1.2.840.113549.1.9.4", _der(_OCTETS, sha256(info).digest())),
                    _attribute("1.2.840.113549.1.9.16.2.47", _der(_SEQUENCE, hashed)),
                ]
            )
        )
        signature = self._key.sign(_der(_SET, attributes), ec.ECDSA(hashes.SHA256()))
        issuer = self._certificate.issuer.public_bytes()
        signer = _der(
            _SEQUENCE,
            _integer(1),
            _der(_SEQUENCE, issuer, _integer(self._certificate.serial_number)),
            _SHA256,
            _der(_EXPLICIT_0, attributes),
            _ECDSA,
            _der(_OCTETS, signature),
        )
        content = _der(_SEQUENCE, _TST_INFO, _der(_EXPLICIT_0, _der(_OCTETS, info)))
        signed = _der(
            _SEQUENCE, _integer(3), _der(_SET, _SHA256), content,
            _der(_EXPLICIT_0, own), _der(_SET, signer),
        )  # fmt: skip
        token = _der(_SEQUENCE, _oid("1.2.840.113549.1.7.2"), _der(_EXPLICIT_0, signed))
        return _der(_SEQUENCE, _der(_SEQUENCE, _integer(0)), token)


@cache
def authority(name: str = "root") -> Authority:
    """Return the authority of a name, made once.

    Args:
        name: common name of its root.
    """
    return Authority(name)


class StampedWindow(IntegrityWindow):
    """`IntegrityWindow` with time stamps of every checkpoint from the opening on."""

    demand = "required"

    def document(self, keys: dict[str, str | None], changes: dict[str, Any]) -> dict[str, Any]:
        return {**super().document(keys, changes), "time_stamps": {"demand": self.demand}}

    def stamped_at(self, size: int, time: int) -> int | None:
        """Return when a checkpoint is stamped, None if it is not: a hook for cheats.

        Args:
            size: of the checkpoint, in entries.
            time: at which the verifier cosigned it, Unix seconds.
        """
        return time + 1

    def stamps(self) -> list[TimeStamp]:
        """Return the stamps that the verifier took."""
        found = []
        for size, time, note in self.checkpoints:
            at = self.stamped_at(size, time)
            if at is not None:
                text = parse_checkpoint(note.encode()).checkpoint.text.encode()
                found.append(TimeStamp(size, authority().stamp(text, at)))
        return found

    def items(self) -> dict[str, bytes]:
        found = super().items()
        stamps = TimeStamps(tuple(self.stamps())).encode()
        return {**found, names.TIME_STAMPS: stamps, names.STAMP_ROOTS: authority().roots}


def _attribute(oid: str, value: bytes) -> bytes:
    return _der(_SEQUENCE, _oid(oid), _der(_SET, value))


def _certificate(
    issuer: x509.Name, subject: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().issuer_name(issuer).subject_name(subject).public_key(key)
    serial = x509.random_serial_number()
    return builder.serial_number(serial).not_valid_before(_FROM).not_valid_after(_UNTIL)


# --- a beacon, and a chain of rounds whose key is known here -------------------------------------

# Computed by py_ecc from the secrets, which are hashes of the names.
_PUBLIC_KEYS: Final = {
    "a beacon of tests": (
        "b978125eed669d2abd3d816e0431e748cea6aef17c850f41f966d405e91c14c4"
        "fac2e59e216076b8364bb84c203500100fe2c1b82363c141d61712840e29f3e3"
        "57ff0600d3465e52877dda012ae549a526b3e62467cd00144205e7a97e5ccab9"
    ),
    "another beacon": (
        "8e66fa19e4824a013a8b8e17e2fa6061eee4348dfc479f876159b6bd9e0d46d5"
        "86cbc6bd07a4042493db4d6e0db17f510323a13b7fc6a92f24c647af6a7f1b23"
        "fede14bfd6e9b39b8c183125fbd0af77dc5685612ab19cc27d49b6089a171278"
    ),
}


class SigningChain:
    """A chain of rounds that signs any round at any time.

    Attributes:
        chain: what a policy names.
    """

    def __init__(self, name: str = "a beacon of tests", *, period: int = 3, genesis: int) -> None:
        """Take a key.

        Args:
            name: one of the two that there are.
            period: seconds between rounds.
            genesis: time of round 1, Unix seconds.
        """
        self._secret = int.from_bytes(sha256(name.encode()).digest(), "big") % pairing.ORDER
        key, group = bytes.fromhex(_PUBLIC_KEYS[name]), sha256(b"group").digest()
        self.chain = BeaconChain.of(key, period, genesis, group, name)

    def round(self, number: int) -> BeaconRound:
        """Return a round, whether it is due or not.

        Args:
            number: from 1.
        """
        return BeaconRound(number, _signed(self._secret, number))

    def info(self) -> dict[str, Any]:
        """Return the chain as drand's API shows it."""
        shown = self.chain.to_json()
        return {
            "public_key": shown["public_key"],
            "period": shown["period"],
            "genesis_time": shown["genesis"],
            "hash": shown["hash"],
            "groupHash": shown["group_hash"],
            "schemeID": shown["scheme"],
            "metadata": {"beaconID": shown["name"]},
        }


@cache
def _signed(secret: int, number: int) -> bytes:
    message = pairing.hash_to_g1(sha256(number.to_bytes(8, "big")).digest())
    point = pairing.multiply(message, secret)
    assert point is not None
    return pairing.encode_g1(point)


GENESIS: Final = START - 100_000
CHAIN: Final = SigningChain(genesis=GENESIS)
OTHER: Final = SigningChain("another beacon", genesis=GENESIS)


class BeaconWindow(PrivateWindow):
    """`PrivateWindow` with rounds of a beacon in noise and sample."""

    delay = 5

    def document(self, keys: dict[str, str | None], changes: dict[str, Any]) -> dict[str, Any]:
        found, terms = super().document(keys, changes), BeaconTerms(CHAIN.chain, self.delay)
        rounds = [terms.round_at(instant) for instant in found["activation_instants"]]
        return {**found, "beacon": terms.to_json(), "activation_rounds": rounds}

    def number(self, a: int) -> int:
        """Return R_a, which the policy fixes."""
        number = self.policy.round_of(a)
        assert number is not None
        return number

    def round(self, a: int) -> BeaconRound | None:
        return CHAIN.round(self.number(a))

    def released(self, a: int) -> int:
        return 1000 * self.policy.release_instant(a) + 5

    def drawn(self) -> int:
        return 1000 * self.policy.release_instant(len(self.instants)) + 5
