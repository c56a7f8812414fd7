"""What was fixed before the window: policy, opening, index commitments."""

from collections.abc import Mapping

from ragaudit.circuits.statements import IndexStatement
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.countersignature import Countersignature, opening_digest
from ragaudit.ledger.messages.embedder_manifest import EmbedderManifest
from ragaudit.ledger.messages.items import OpeningItem, PreviousWindow
from ragaudit.ledger.messages.merkle_commitments import IndexCommitment
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import Opening, TenantOpening
from ragaudit.verifier.procedure.facts import (
    Inputs,
    MissingInput,
    demand,
    fact,
    known_or_missing,
)
from ragaudit.verifier.terms import Terms


class OpeningFacts(Inputs):
    """Facts that checks 1, 3 and 4 own."""

    @fact("policy")
    def policy(self) -> Policy:
        """The parsed policy."""
        return Policy.parse(self.item(items.POLICY, "policy"))

    @fact("policy")
    def policy_digest(self) -> bytes:
        """C_policy."""
        return self.policy.digest

    @fact("policy")
    def tenants(self) -> frozenset[str]:
        """The policy's tenants."""
        return frozenset(self.policy.tenants)

    @fact("policy")
    def countersignature(self) -> Countersignature:
        """The verifier's countersignature, its signature checked."""
        found = Countersignature.parse(self.item(items.COUNTERSIGNATURE, "policy"))
        found.verify(self.policy.keys.verifier)
        return found

    @fact("policy")
    def terms(self) -> Terms:
        """The verifier's terms; after the countersignature, those that it names."""
        found = Terms.parse(self.item(items.TERMS, "policy"))
        # The verifier cannot relax its terms for one window once it has countersigned them.
        if self.now is None and found.digest != self.countersignature.terms_digest:
            raise RejectedError("other terms than were countersigned", where=items.TERMS)
        return found

    @fact("policy")
    def previous(self) -> PreviousWindow:
        """What the verifier holds of the window whose final checkpoint the policy names."""
        # Not a missing item: the verifier has no such window, so nothing that it saw ends there.
        if items.PREVIOUS not in self.evidence:
            raise RejectedError("of a window that this verifier does not know")
        return self.parsed(items.PREVIOUS, "policy", _previous)

    @property
    def cosigners(self) -> CosignerPolicy:
        """The one cosigner of the policy."""
        return CosignerPolicy((self.policy.keys.cosigner,), 1)

    @fact("commitments")
    def opening_item(self) -> OpeningItem:
        """Salt and body of the opening as it was countersigned."""
        return self.parsed(items.OPENING, "commitments", OpeningItem.parse)

    @fact("commitments")
    def opening_digest(self) -> bytes:
        """What a countersignature of this opening names."""
        return opening_digest(self.opening_item.salt, self.opening_item.body)

    @fact("commitments")
    def opening(self) -> Opening:
        """The opening entry's body."""
        return Opening.parse(self.opening_item.body)

    @fact("commitments")
    def opened(self) -> Mapping[str, TenantOpening]:
        """What the opening says of each tenant."""
        return {opened.tenant: opened for opened in self.opening.tenants}

    @fact("commitments")
    def embedder_digest(self) -> bytes:
        """C_emb of the manifest at hand, which is for the policy's dimension."""
        try:
            manifest = EmbedderManifest.parse(self.item(items.EMBEDDER, "commitments"))
        except MalformedError as error:
            what = f"not an embedder's manifest: {error.what}"
            raise MalformedError(what, where=items.EMBEDDER, expected=error.expected) from error
        # C_emb alone would bind a manifest that no index of this window can be made with.
        if manifest.dimension != self.policy.dimension:
            raise RejectedError(
                "embedder of another dimension", expected=str(self.policy.dimension)
            )
        return manifest.digest()

    def index(self, tenant: str) -> IndexCommitment:
        """Return the tenant's index commitment, as the opening names it.

        Raises:
            MissingInput: `registrations` for a tenant that the policy has not, `commitments`
                without an index that can be read.
        """
        if tenant not in self.tenants:
            raise MissingInput("registrations", f"tenant {tenant} is not in the policy")
        if tenant not in self._indices:
            self._indices[tenant] = known_or_missing(
                "commitments", lambda: self._read_index(tenant), f"index of {tenant}"
            )
        return demand(self._indices[tenant])

    def _read_index(self, tenant: str) -> IndexCommitment:
        data = self.item(items.index_name(tenant), "commitments")
        index, opened = IndexCommitment.parse(data), self.opening.tenant(tenant)
        policy = self.policy
        # An upload says itself whose it is; what counts is the opening, which is countersigned.
        place = (index.window, index.tenant, index.version, index.dimension)
        if place != (policy.window, tenant, 1, policy.dimension):
            raise RejectedError(
                f"of {place}", expected=f"{(policy.window, tenant, 1, policy.dimension)}"
            )
        if index.rows != opened.rows:
            raise RejectedError(f"{index.rows} rows uploaded, {opened.rows} in the opening")
        if index.root != opened.index_root:
            raise RejectedError("root is not the opening's", expected=opened.index_root.hex())
        if index.proof_digest != opened.proof_digest:
            raise RejectedError("proof is not the opening's", expected=opened.proof_digest.hex())
        return index

    def accepted_index(self, tenant: str) -> IndexCommitment:
        """Return the tenant's index with its argument verified.

        Raises:
            MissingInput: `index-proof` where it does not hold; otherwise as for :meth:`index`.
        """
        index = self.index(tenant)
        # Once: an argument about a large index takes minutes, and every sampled record asks.
        if tenant not in self._accepted:
            self._accepted[tenant] = known_or_missing(
                "index-proof", lambda: self._verified(index), f"index of {tenant}"
            )
        return demand(self._accepted[tenant])

    def _verified(self, index: IndexCommitment) -> IndexCommitment:
        statement = IndexStatement.of(
            policy_digest=self.policy_digest,
            window=index.window,
            tenant=index.tenant,
            version=index.version,
            index_root=index.root,
            dimension=index.dimension,
            commitments=index.commitments,
        )
        self.engine.verify_index(statement, index.proof)
        return index


def _previous(data: bytes) -> PreviousWindow:
    return PreviousWindow.from_json(canonical_json.loads(data))
