"""What was fixed before the window: policy, opening, index commitments."""

from collections.abc import Mapping

from ragaudit.circuits.selection import ColumnArrays
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.countersignature import Countersignature, opening_digest
from ragaudit.ledger.messages.embedder_manifest import EmbedderManifest
from ragaudit.ledger.messages.items import OpeningItem, PreviousWindow
from ragaudit.ledger.messages.merkle_commitments import IndexCommitment
from ragaudit.ledger.messages.overlaps import OverlappingWindow, Overlaps, overlap
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import Opening, TenantOpening
from ragaudit.verifier.procedure.facts import (
    Inputs,
    MissingInput,
    demand,
    fact,
    known_or_missing,
)
from ragaudit.verifier.procedure.indexes import check_place, verify_argument
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

    @fact("policy")
    def overlapping(self) -> tuple[OverlappingWindow, ...]:
        """The windows of this provider at the same time, as the verifier countersigned them."""
        if items.OVERLAPS not in self.evidence:
            return ()
        found = self.parsed(items.OVERLAPS, "policy", Overlaps.parse).messages
        for each in found:
            if not overlap(self.policy, each.policy):
                raise RejectedError("does not overlap", where=f"window {each.policy.window}")
        return found

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
    def embedder_manifest(self) -> EmbedderManifest:
        """The manifest at hand, which is for the policy's dimension and questions."""
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
        # Nobody could say what the vector of a text should be: A1 of such records is never shown.
        if manifest.kind == "none" and "text" in self.policy.retrieval.query_kinds:
            raise RejectedError("no embedder, and a policy with texts", expected="vectors alone")
        return manifest

    @fact("commitments")
    def embedder_digest(self) -> bytes:
        """C_emb of the manifest at hand."""
        return self.embedder_manifest.digest()

    @property
    def unnoised(self) -> bool:
        """Whether the policy can be read and adds no noise: some rules do not apply then (9.7)."""
        try:
            return not self.policy.noised
        except MissingInput:
            return False

    def stated_index(self, tenant: str, version: int) -> TenantOpening:
        """Return what opening or log say of a version of a tenant's index.

        Args:
            tenant: of the policy.
            version: 1 is the opening's.

        Raises:
            MissingInput: `commitments` without an opening that can be read, or that has not the
                tenant; `schedule` for a version that there is not.
        """
        if version != 1:
            raise MissingInput("schedule", f"there is no version {version} of {tenant}")
        if tenant not in self.opened:
            raise MissingInput("commitments", f"the opening has no index of {tenant}")
        return self.opened[tenant]

    def index(self, tenant: str, version: int = 1) -> IndexCommitment:
        """Return a version of the tenant's index commitment, as opening or log name it.

        Raises:
            MissingInput: `registrations` for a tenant that the policy has not, `schedule` for a
                version that there is not, `commitments` without an index that can be read.
        """
        if tenant not in self.tenants:
            raise MissingInput("registrations", f"tenant {tenant} is not in the policy")
        place = tenant, version
        if place not in self._indices:
            self._indices[place] = known_or_missing(
                "commitments", lambda: self._read_index(*place), _called(*place)
            )
        return demand(self._indices[place])

    def _read_index(self, tenant: str, version: int) -> IndexCommitment:
        stated = self.stated_index(tenant, version)
        index = IndexCommitment.parse(self.item(items.index_name(tenant, version), "commitments"))
        check_place(index, self.policy, tenant, version)
        by = "opening" if version == 1 else "log"
        if index.rows != stated.rows:
            raise RejectedError(f"{index.rows} rows uploaded, {stated.rows} in the {by}")
        if index.root != stated.index_root:
            raise RejectedError(f"root is not the {by}'s", expected=stated.index_root.hex())
        if index.proof_digest != stated.proof_digest:
            raise RejectedError(f"proof is not the {by}'s", expected=stated.proof_digest.hex())
        # Read once: filters of all sampled records are evaluated on them.
        self._columns[tenant, version] = ColumnArrays(index.column_values(self.policy))
        return index

    def column_arrays(self, tenant: str, version: int) -> ColumnArrays:
        """Return the public columns of the N rows of a version; raises as `index`."""
        self.index(tenant, version)
        return self._columns[tenant, version]

    def accepted_index(self, tenant: str, version: int = 1) -> IndexCommitment:
        """Return a version of the tenant's index with its argument verified.

        Raises:
            MissingInput: `index-proof` where it does not hold; otherwise as for :meth:`index`.
        """
        index, place = self.index(tenant, version), (tenant, version)
        # Once: an argument about a large index takes minutes, and every sampled record asks.
        if place not in self._accepted:
            self._accepted[place] = known_or_missing(
                "index-proof", lambda: self._verified(index), _called(*place)
            )
        return demand(self._accepted[place])

    def _verified(self, index: IndexCommitment) -> IndexCommitment:
        verify_argument(index, self.policy, self.engine)
        return index


def _called(tenant: str, version: int) -> str:
    return f"index of {tenant}" if version == 1 else f"index of {tenant}, version {version}"


def _previous(data: bytes) -> PreviousWindow:
    return PreviousWindow.from_json(canonical_json.loads(data))
