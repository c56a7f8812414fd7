"""ML-DSA-44 (FIPS 204), with an empty context: the cosigners' key of type 0x06."""

from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey, MLDSA44PublicKey
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.signing import SeededKey, SignatureRejected

PUBLIC_BYTES = 1312
MLDSA_SIGNATURE_BYTES = 2420


@dataclass(frozen=True)
class MlDsaPublicKey:
    """A public key of ML-DSA-44.

    Attributes:
        raw: 1312 bytes, `pk` of FIPS 204; every such string is the encoding of one key.

    Raises:
        MalformedError: another length.
    """

    raw: bytes

    def __post_init__(self) -> None:
        if len(self.raw) != PUBLIC_BYTES:
            raise MalformedError("public key has a wrong length", expected=f"{PUBLIC_BYTES} bytes")

    def verify_raw(self, signature: bytes, message: bytes) -> None:
        """Check ``signature`` over bytes that have their own framing.

        Args:
            signature: 2420 bytes.
            message: whole, with its framing.

        Raises:
            SignatureRejected: wrong length or not a signature of ``message``.
            UnsupportedError: this build of the cryptography library lacks ML-DSA.
        """
        if len(signature) != MLDSA_SIGNATURE_BYTES:
            raise SignatureRejected(
                "signature has a wrong length", expected=f"{MLDSA_SIGNATURE_BYTES} bytes"
            )
        try:
            MLDSA44PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except (InvalidSignature, ValueError) as error:
            raise SignatureRejected("signature does not verify under this key") from error
        except UnsupportedAlgorithm:
            raise _unsupported() from None


@dataclass(frozen=True)
class MlDsaPrivateKey(SeededKey):
    """A private key of ML-DSA-44; its representation shows the public half only.

    Attributes:
        public: the public half.
    """

    public: MlDsaPublicKey = field(init=False)
    _key: MLDSA44PrivateKey = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            key = MLDSA44PrivateKey.from_seed_bytes(self._seed)
        except UnsupportedAlgorithm:
            raise _unsupported() from None
        object.__setattr__(self, "public", MlDsaPublicKey(key.public_key().public_bytes_raw()))
        object.__setattr__(self, "_key", key)

    def sign_raw(self, message: bytes) -> bytes:
        """Return a signature of 2420 bytes; it is hedged, so no two are alike.

        Args:
            message: whole, with its framing.
        """
        return self._key.sign(message)


def _unsupported() -> UnsupportedError:
    return UnsupportedError(
        "ML-DSA-44 is not in this build of the cryptography library",
        where="key",
        expected="cryptography 48 or later, as its wheels are built",
    )
