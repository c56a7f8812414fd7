"""What was fixed before the window: policy, opening, index commitments."""

from collections.abc import Mapping

from ragaudit.circuits.statements import IndexStatement
from ragaudit.encoding.errors import MalformedError, RagauditError, RejectedError
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.messages.before_window import OpeningItem, PreviousWindow
from ragaudit.ledger.messages.countersignature import Countersignature, opening_digest
from ragaudit.ledger.messages.embedder_manifest import EmbedderManifest
from ragaudit.ledger.messages.merkle_commitments import IndexCommitment
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import Opening, TenantOpening
from ragaudit.verifier import evidence as items
from ragaudit.verifier.procedure.facts import MissingInput, fact
from ragaudit.verifier.procedure.inputs import Inputs
from ragaudit.verifier.terms import Terms


class OpeningFacts(Inputs):
    """Facts that checks 1, 3 and 4 own."""

    # --- 1: policy ------------------------------------------------------------------------

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
        if self.now is None and found.digest != self.countersignature.terms_digest:
            raise RejectedError("other terms than were countersigned", where=items.TERMS)
        return found

    @fact("policy")
    def previous(self) -> PreviousWindow:
        """What the verifier holds of the window whose final checkpoint the policy names."""
        if items.PREVIOUS not in self.evidence:
            raise RejectedError("of a window that this verifier does not know")
        return PreviousWindow.from_json(self.json(items.PREVIOUS, "policy"))

    @property
    def cosigners(self) -> CosignerPolicy:
        """The one cosigner of the policy."""
        return CosignerPolicy((self.policy.keys.cosigner,), 1)

    # --- 3, 4: commitments and index arguments ----------------------------------------------

    @fact("commitments")
    def opening_item(self) -> OpeningItem:
        """Salt and body of the opening as it was countersigned."""
        return OpeningItem.from_json(self.json(items.OPENING, "commitments"))

    @fact("commitments")
    def opening_digest(self) -> bytes:
        """What a countersignature of this opening names."""
        return opening_digest(self.opening_item.salt, self.opening_item.body)

    @fact("commitments")
    def opening(self) -> Opening:
        """The opening entry's body."""
        return Opening.decode(self.opening_item.body)

    @fact("commitments")
    def opened(self) -> Mapping[str, TenantOpening]:
        """What the opening says of each tenant."""
        return {each.tenant: each for each in self.opening.tenants}

    @fact("commitments")
    def embedder_digest(self) -> bytes:
        """C_emb of the manifest at hand, which is for the policy's dimension."""
        try:
            manifest = EmbedderManifest.parse(self.item(items.EMBEDDER, "commitments"))
        except MalformedError as error:
            what = f"not an embedder's manifest: {error.what}"
            raise MalformedError(what, where=items.EMBEDDER, expected=error.expected) from error
        if manifest.dimension != self.policy.dimension:
            raise RejectedError(
                "embedder of another dimension", expected=str(self.policy.dimension)
            )
        return manifest.digest()

    def index(self, tenant: str) -> IndexCommitment:
        """Return the tenant's index commitment, as the opening names it.

        Raises:
            MissingInput: `commitments` without one that can be read.
        """
        if tenant not in self.tenants:
            raise MissingInput("registrations", f"tenant {tenant} is not in the policy")
        if tenant not in self._indices:
            try:
                self._indices[tenant] = self._read_index(tenant)
            except MissingInput as missing:
                self._indices[tenant] = missing
            except RagauditError as error:
                self._indices[tenant] = MissingInput("commitments", f"index of {tenant}: {error}")
        found = self._indices[tenant]
        if isinstance(found, MissingInput):
            raise MissingInput(found.owner, found.reason)
        return found

    def _read_index(self, tenant: str) -> IndexCommitment:
        data = self.item(items.index_name(tenant), "commitments")
        found, named = IndexCommitment.decode(data), self.opening.tenant(tenant)
        policy = self.policy
        place = (found.window, found.tenant, found.version, found.dimension)
        if place != (policy.window, tenant, 1, policy.dimension):
            raise RejectedError(
                f"of {place}", expected=f"{(policy.window, tenant, 1, policy.dimension)}"
            )
        if found.rows != named.rows:
            raise RejectedError(f"{found.rows} rows uploaded, {named.rows} in the opening")
        if found.root != named.index_root:
            raise RejectedError("root is not the opening's", expected=named.index_root.hex())
        if found.proof_digest != named.proof_digest:
            raise RejectedError("proof is not the opening's", expected=named.proof_digest.hex())
        return found

    def accepted_index(self, tenant: str) -> IndexCommitment:
        """Return the tenant's index with its argument verified.

        Raises:
            MissingInput: `index-proof` where it does not hold, `commitments` without an index.
        """
        index = self.index(tenant)
        if tenant not in self._accepted:
            self._accepted[tenant] = self._judge_index(index)
        missing = self._accepted[tenant]
        if missing is not None:
            raise MissingInput(missing.owner, missing.reason)
        return index

    def _judge_index(self, index: IndexCommitment) -> MissingInput | None:
        statement = IndexStatement.of(
            policy_digest=self.policy_digest,
            window=index.window,
            tenant=index.tenant,
            version=index.version,
            index_root=index.root,
            dimension=index.dimension,
            commitments=index.commitments,
        )
        try:
            self.engine.verify_index(statement, index.proof)
        except RejectedError as error:
            return MissingInput("index-proof", f"index of {index.tenant}: {error.what}")
        return None
