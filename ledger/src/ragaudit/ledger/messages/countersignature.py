"""The verifier agrees to audit a window, and releases its activations.

docs/spec/08-services.md §8.4: the countersignature fixes the anchor of the activation chain, and
each activation reveals the chain's next value.
"""

from typing import Annotated

from ragaudit.encoding.digests import structure
from ragaudit.encoding.tagged import Field
from ragaudit.ledger.messages.beacon import Engine
from ragaudit.ledger.messages.chains import activation_randomness, verify_activation_preimage
from ragaudit.ledger.messages.kernel import Count, Digest, Integer, Milliseconds, Name
from ragaudit.ledger.messages.policy import MAX_INSTANTS, Policy
from ragaudit.ledger.messages.released import ReleaseMessage
from ragaudit.ledger.messages.signed import VerifierMessage


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
        return (*fields, self.round.number, self.round.signature)

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
