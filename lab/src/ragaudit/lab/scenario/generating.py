"""A window with a generation channel: what is proven and opened of its charges and answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.budgets import BudgetStatement, ChargeEntry, ChargeStatement
from ragaudit.lab.scenario.accounts import Account, Asked, TenantIndex
from ragaudit.lab.scenario.charging import Charged, ChargingWindow
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.challenge import PaidRow, Replay, Response, Stratum, UsedRow
from ragaudit.ledger.messages.commitments import KeyOpening
from ragaudit.ledger.messages.entries import Charge
from ragaudit.privacy import sample as sampling
from ragaudit.privacy.sample import draw_charges


class GeneratingWindow(ChargingWindow):
    """The window with its evidence."""

    def opened(self) -> dict[int, Asked | Charged]:
        return {**super().opened(), **{one.index: one for one in self.charged}}

    def logged_charges(self) -> list[sampling.LoggedRecord]:
        """Return the charge entries of the log, for the sample."""
        entries = [(i, e[2]) for i, e in enumerate(self.entries) if e[0] == Charge.KIND]
        bodies = [(i, Charge.parse(body)) for i, body in entries]
        return [sampling.LoggedRecord(i, each.tenant, each.pseudonym) for i, each in bodies]

    def draw_sample(self, receipts: Any) -> list[dict[str, Any]]:
        seed = sampling.sampling_seed(
            self.tree.root(), self.chain_seed, self.beacon(len(self.instants))
        )
        drawn = draw_charges(
            self.logged_charges(),
            tenants=self.policy.tenants,
            rule=self.policy.audit,
            whole=self.proving == "all",
            seed=seed,
        )
        strata = [
            Stratum.of(each.stratum.id, each.stratum.population, each.sample).to_json()
            for each in drawn
        ]
        return super().draw_sample(receipts) + strata

    def items(self) -> dict[str, bytes]:
        found = super().items()
        tenants = {one.charge.tenant for one in self.charged}
        budgets = {names.budget_name(tenant): self.prove_budget(tenant) for tenant in tenants}
        replays = {
            names.replay_name(one.index): self.replay(one).encode()
            for one in self.charged
            if self.replayed and (one.answer is not None or one.charge.sums)
        }
        return found | budgets | replays

    def response(self, asked: Asked | Charged) -> bytes:
        if isinstance(asked, Asked):
            return super().response(asked)
        openings, charge = asked.openings, asked.charge
        shown = self.policy.query_text_disclosure == "sampled"
        return Response(
            index=asked.index,
            key=self.open_charge_key(asked),
            salt_q=openings.salt_q if shown else None,
            query=openings.question.data if shown else None,
            salt_e=openings.salt_e,
            embedding=tuple(asked.embedding.tolist()),
            salt_f=openings.salt_f,
            filter=openings.filter.encode(),
            salt_s=openings.salt_s,
            sketch=openings.sketch,
            proof=self.prove_group(charge.tenant, asked),
        ).encode()

    def open_charge_key(self, asked: Charged) -> KeyOpening:
        """Return the opening of a charge entry's key: a hook for cheats."""
        return self.seed_commitment.open(asked.charge.slot, asked.charge.counter)

    def sampled_of(self, tenant: str) -> list[int]:
        """Return the places of the sampled entries among the tenant's charge entries."""
        strata = self.draw_sample(())
        sampled = {i for stratum in strata for i in stratum["sample"]}
        return [n for n, one in enumerate(self.history(tenant)) if one.index in sampled]

    def prove_group(self, tenant: str, asked: Charged) -> bytes:
        """Return the argument of a group in the response to its last entry, else nothing."""
        entries, places = self.history(tenant), self.sampled_of(tenant)
        own = next(n for n, one in enumerate(entries) if one is asked)
        rank = places.index(own)
        last = rank == len(places) - 1 or rank % self.group == self.group - 1
        if not last:
            return b""
        group = places[rank - rank % self.group : rank + 1]
        return self.prove_charges(tenant, group)

    def prove_charges(self, tenant: str, group: Sequence[int]) -> bytes:
        """Return the charge argument of entries of a tenant: a hook for cheats."""
        entries, index = self.history(tenant), self.indices[tenant]
        points = b"".join(one.charge.charge or b"" for one in entries)
        sums = core.running_sums(points, list(group))
        statement = ChargeStatement(
            self.uses,
            index.commitment.commitments,
            tuple(self.stated_charge(entries[n], b) for n, b in zip(group, sums, strict=True)),
        )
        return core.prove_charges(
            statement,
            index.rows,
            index.blindings,
            [one.positions for one in entries],
            _blindings(entries),
            list(group),
        )

    def stated_charge(self, asked: Charged, before: bytes) -> ChargeEntry:
        """Return what the argument says of an entry."""
        charge = asked.charge
        index = self.indices[charge.tenant].commitment
        filtered = replace(self.stated_record(asked), tenant=charge.tenant)
        return ChargeEntry.of(
            policy_digest=self.policy.digest,
            window=self.window,
            tenant=charge.tenant,
            version=1,
            index_root=index.root,
            seed_root=self.seed_root,
            activation_randomness=self.randomness(charge.activation),
            body=asked.body,
            log_index=asked.index,
            query=asked.embedding,
            threshold=charge.threshold or 0,
            allowed=self.allowed(filtered, asked.openings.filter),
            charged_before=before,
            charge=charge.charge or b"",
        )

    def stated_record(self, asked: Charged) -> Any:
        """Return a record of the same question, which says to which rows a filter applies."""
        return self.stated(asked.account, asked.request, asked.openings, asked.charge.time)

    def budget_statement(self, tenant: str) -> BudgetStatement:
        """Return what is claimed of all charge entries of a tenant: a hook for cheats."""
        index = self.indices[tenant].commitment
        return BudgetStatement.of(
            policy_digest=self.policy.digest,
            window=self.window,
            tenant=tenant,
            version=1,
            index_root=index.root,
            log_root=self.tree.root(),
            rows=index.rows,
            uses=self.uses,
            charges=b"".join(one.charge.charge or b"" for one in self.history(tenant)),
        )

    def prove_budget(self, tenant: str) -> bytes:
        """Return the budget argument of a tenant: a hook for cheats."""
        entries = self.history(tenant)
        statement = self.budget_statement(tenant)
        return core.prove_budget(statement, [one.positions for one in entries], _blindings(entries))

    def replay(self, asked: Charged) -> Replay:
        """Return what opens an answer: a hook for cheats."""
        index = self.indices[asked.charge.tenant]
        paid = tuple(self.paid_row(index, i) for i in asked.positions)
        if asked.answer is None:
            return Replay.of_void(asked.blinding, paid)
        return Replay(
            asked.blinding,
            paid,
            tuple(
                UsedRow(i, index.ids[i], index.texts[i], index.attributes[i], index.salts[i])
                for i in asked.used
            ),
            asked.votes,
            asked.answer,
            asked.salt_a,
        )

    def paid_row(self, index: TenantIndex, i: int) -> PaidRow:
        """Return the opening of a row."""
        vector = tuple(int(x) for x in index.rows[i])
        return PaidRow(i, vector, index.blindings[i].tobytes())


class UnchargedWindow(GeneratingWindow):
    """The same under NAIVE: every row pays for every question, and none is charged."""

    uses = 3
    replayed = False

    def terms_json(self) -> dict[str, Any]:
        return {**super().terms_json(), "mechanism": "naive", "threshold": None}

    def due_rows(
        self, tenant: str, embedding: npt.NDArray[np.int16], allowed: Sequence[int] | None
    ) -> tuple[int, ...]:
        return tuple(range(self.rows) if allowed is None else allowed)

    def alter_charge(self, account: Account, charge: Charge) -> Charge:
        return replace(charge, threshold=None, charge=None)

    def prove_group(self, tenant: str, asked: Charged) -> bytes:
        return b""

    def items(self) -> dict[str, bytes]:
        found = super().items()
        return {name: data for name, data in found.items() if not name.startswith(names.BUDGETS)}

    def prove_budget(self, tenant: str) -> bytes:
        return b""


def _blindings(entries: Sequence[Charged]) -> npt.NDArray[np.uint8]:
    data = b"".join(one.blinding for one in entries)
    return np.frombuffer(data, dtype=np.uint8).reshape(len(entries), 32)
