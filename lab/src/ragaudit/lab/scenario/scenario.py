"""A window with all services: accounts ask through the client library, the verifier audits."""

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
from ragaudit.client import Client, Receipt
from ragaudit.client.asking import Asked
from ragaudit.encoding.errors import InternalError, RagauditError
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.lab.scenario.integrity import LEFT_SHELF, RECENT
from ragaudit.lab.scenario.services import (
    EXACT,
    PRIVATE,
    WINDOW,
    AppTransport,
    Clock,
    Loop,
    Offer,
    Prover,
    ScenarioAuditor,
    Verifier,
    new_prover_folder,
    prover_folder,
    shelved_documents,
)
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.service import Components
from ragaudit.prover.store.states import State
from ragaudit.verifier.procedure import REFUSED, Outcome
from ragaudit.verifier.settings import Limits

ACCOUNTS: Final = (
    ("alice", "acme", True),
    ("bob", "acme", False),
    ("carol", "beta", False),
    ("dora", "beta", False),
)
"""Name, tenant, whether it holds a nonce chain. dora registers while the window is open."""

EARLY: Final = ("alice", "bob", "carol")

ASKED_BY_TWO: Final = "a question that bob and carol both ask"


@dataclass
class Account:
    """An account with its client library, and what that library complained about."""

    name: str
    client: Client
    transport: AppTransport
    receipts: list[Receipt] = field(default_factory=list)
    rejected: list[dict[str, Any]] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def attempt(self, action: Any) -> Any:
        """Do something and return its result.

        Args:
            action: called without arguments. A complaint of the library, an error of the project,
                is noted and is no reason to stop: cheated accounts go on.

        Returns:
            What ``action`` returns; None after a complaint.
        """
        try:
            return action()
        except RagauditError as error:
            self.complaints.append(f"{self.name}: {error}")
            return None

    def ask(self, text: Asked, top_k: int, wanted: str = "") -> None:
        """Ask a question; an answer that the library rejects is kept as it came, to be disputed.

        Args:
            text: the query, or a vector.
            top_k: K.
            wanted: a filter's text.
        """
        for name in ("query", "reveal"):
            self.transport.answered.pop(name, None)
        found = self.attempt(lambda: self.client.search(text, top_k, filter=wanted))
        if found is not None:
            self.receipts.append(found.receipt)
            return
        for name in ("query", "reveal"):
            if (answer := self.transport.answered.get(name)) is not None:
                self.rejected.append(answer)

    def submit(self, *, disputes: bool) -> None:
        """Complete the receipts and hand their public parts in.

        Args:
            disputes: whether to dispute the answers that the library rejected as well.
        """
        for receipt in self.receipts:
            self.attempt(lambda receipt=receipt: receipt.complete(0.0))
        self.attempt(lambda: self.client.submit(self.receipts))
        for file in self.rejected if disputes else ():
            self.attempt(lambda file=file: self.client.dispute(file))


@dataclass(frozen=True)
class Conclusion:
    """What came of a window.

    Attributes:
        outcome: of the procedure, or of the checks before the window if it was refused.
        complaints: what client libraries and the prover itself said meanwhile.
        disputes: how many answers the accounts disputed.
    """

    outcome: Outcome
    complaints: tuple[str, ...]
    disputes: int
    auditor: ScenarioAuditor = field(repr=False)

    def without(self, checks: Sequence[str]) -> Outcome:
        """Judge the same evidence again without some checks.

        Args:
            checks: ids (docs/spec/09-audit.md) that are left out: of the checks before the window
                if it was refused, of the whole procedure otherwise.
        """
        if self.outcome.result == REFUSED:
            return self.auditor.judge_opening(checks)
        return self.auditor.judge(checks)


@dataclass(frozen=True)
class Prepared:
    """A window that is committed, countersigned and has its first accounts, all of it honest.

    Attributes:
        keys: the accounts' API keys by name.
        offer: what its provider offers.
        now: where the clock stood, Unix milliseconds.
    """

    folder: Path
    keys: dict[str, str] = field(repr=False)
    now: int
    offer: Offer = PRIVATE


class Scenario:
    """One window from set-up to verdict. Subclasses add what single accounts do."""

    patience_seconds = 30.0  # of a client, for the whole of a call
    limits = Limits()  # the verifier's
    offer: Offer = PRIVATE
    roster: Sequence[tuple[str, str, bool]] = ACCOUNTS

    def __init__(
        self,
        folder: Path,
        components: Components,
        *,
        prepared: Prepared | None = None,
        disputes: bool = False,
        without: Sequence[str] = (),
    ) -> None:
        """Prepare.

        Args:
            folder: an empty one, or none yet, for everything that the services keep.
            components: the prover's, with one cheat among them.
            prepared: an honest window to go on from; it is copied.
            disputes: whether accounts dispute the answers that their library rejects.
            without: checks that this verifier does not make.
        """
        self.folder = folder
        self.components = components
        self.disputes = disputes
        self.clock = Clock()
        self.keys: dict[str, str] = {}
        self.accounts: dict[str, Account] = {}
        self.troubles: list[str] = []
        self._prepared = prepared
        self._without = without

    def run(self) -> Conclusion:
        """Return what comes of the whole window."""
        with ExitStack() as stack:
            self.open(stack)
            if self.prover.state is not State.REFUSED:
                self._window()
            return self._conclusion()

    def prepare(self) -> Prepared:
        """Return the window up to its first activation instant, for others to go on from."""
        with ExitStack() as stack:
            self.open(stack)
        if self.troubles:
            raise InternalError(f"not an honest window: {self.troubles}")
        return Prepared(self.folder, self.keys, self.clock.now, self.offer)

    def open(self, stack: ExitStack) -> None:
        """Bring the window up to its first activation instant.

        Args:
            stack: what is opened is closed with it, clients before services before the loop.
        """
        self.loop = Loop()
        stack.callback(self.loop.close)
        if self._prepared is None:
            made = new_prover_folder(self.folder / "prover", self.offer)
        else:
            # A copy for each: one prepared window serves any number of cheats, and none sees
            # another's.
            shutil.copytree(self._prepared.folder, self.folder, dirs_exist_ok=True)
            made = prover_folder(self.folder / "prover")
            self.clock.now = self._prepared.now
        self.verifier = Verifier.open(
            self.folder / "verifier", self.loop, self.clock, made, self._without, self.limits
        )
        stack.callback(self.verifier.close)
        self.prover = Prover.open(
            made,
            self.components,
            self.loop,
            self.clock,
            self.verifier.transport,
            self.offer.settings,
        )
        stack.callback(self.prover.close)
        if self._prepared is None:
            self._commit()
        else:
            self.keys = self._prepared.keys
        for name, _, anchored in self.roster:
            account = self.accounts[name] = self._account(name, self.keys[name], anchored)
            stack.callback(account.client.close)
        if self._prepared is None and self.prover.state is not State.REFUSED:
            for name in EARLY:
                self._register(name)
            self.prover.checkpoint()

    def _commit(self) -> None:
        """Accounts, and a window that is countersigned or refused."""
        for name, tenant, _ in self.roster:
            answer = self.prover.operate("accounts", {"tenant": tenant, "name": name})
            self.keys[name] = answer["key"]
        self.prover.operate("windows", {"window": WINDOW})
        self.troubles += self.prover.drive()

    def _account(self, name: str, key: str, anchored: bool) -> Account:
        transport = AppTransport(self.prover.app, self.loop)
        client = Client(
            "http://prover.test",
            key,
            window=WINDOW,
            verifier_url="http://verifier.test",
            verifier_key=self.verifier.key,
            embedder=HashEmbedder(),
            state_dir=self.folder / "clients" / name,
            anchored=anchored,
            transport=transport,
            verifier_transport=self.verifier.transport,
            clock=self.clock,
            timeout_seconds=self.patience_seconds,
        )
        return Account(name, client, transport)

    def _window(self) -> None:
        policy = self.prover.policy
        first, second, sampling = policy.activation_instants
        self.clock.at(first)
        self.troubles += self.prover.drive()
        self.before_second(first)
        self.clock.at(second)
        self.troubles += self.prover.drive()
        self.after_second(second)
        self.prover.checkpoint()
        for account in self.accounts.values():
            account.submit(disputes=self.disputes)
        # Still before the end: from the sampling instant on receipts and disputes are refused (spec
        # 8.3).
        self.after_submission()
        self.clock.at(policy.end)
        self.troubles += self.prover.drive()
        self.clock.at(sampling)
        self.verifier.tick()
        self.troubles += self.prover.drive()
        self.after_sampling()
        # Proofs leave the prover at this second and not before (spec 5.2).
        self.clock.at(sampling + policy.release_seconds)
        self.troubles += self.prover.drive()
        self.verifier.tick()
        if self.verifier.auditor.outcome is None:
            self.clock.at(sampling + policy.audit.deadline_seconds + 2)
            self.troubles += self.prover.drive()
            self.verifier.tick()
        self.troubles += self.prover.drive()

    def before_second(self, at: int) -> None:
        """Play what happens between the first activation instant and the second.

        Args:
            at: the first instant, Unix seconds.
        """
        self.clock.at(at + 1)
        self.ask("alice", "the first question of alice", 3)
        self.clock.at(at + 2)
        self.ask("bob", ASKED_BY_TWO, 2)
        self.ask("carol", ASKED_BY_TWO, 3)
        self.prover.checkpoint()
        self.clock.at(at + 5)
        self._register("dora")
        self.prover.checkpoint()
        self.clock.at(at + 20)
        self.ask("alice", "the second question of alice", 2)
        self.ask("bob", "the second question of bob", 3)

    def after_second(self, at: int) -> None:
        """Play what happens after the second activation instant.

        Args:
            at: that instant, Unix seconds.
        """
        self.clock.at(at + 1)
        self.ask("dora", "the first question of dora", 3)
        self.ask("carol", "the second question of carol", 2)
        self.prover.checkpoint()
        self.clock.at(at + 20)
        self.ask("alice", "the third question of alice", 3)

    def after_submission(self) -> None:
        """Do what accounts do after they handed their receipts in: nothing, in ordinary traffic."""

    def after_sampling(self) -> None:
        """Do what accounts do when the sample is drawn.

        Every record is in it, so only the arbiter may see what they dispute
        (docs/spec/08-services.md §8.9).
        """
        for account in self.accounts.values():
            for file in account.rejected if self.disputes else ():
                self.arbitrate(account.name, file)

    def arbitrate(self, name: str, file: dict[str, Any]) -> None:
        """Take a disputed receipt file to the arbiter, and its finding to the verifier.

        Args:
            name: of the account; what the arbiter declines becomes its complaint.
            file: the receipt file as JSON.

        Raises:
            InternalError: the verifier did not take the finding.
        """
        with self.http("prover", name) as prover:
            window = prover.get(f"/v1/windows/{WINDOW}").json()
        try:
            finding, public = self.verifier.arbitrate(file, window)
        except RagauditError as error:
            self.accounts[name].complaints.append(f"arbiter: {error}")
            return
        told = {"finding": finding.to_json(), "public": public.to_json()}
        with self.http("verifier") as verifier:
            answer = verifier.post(f"/v1/windows/{WINDOW}/findings", json=told)
        if not answer.is_success:
            raise InternalError(f"the verifier did not take a finding: {answer.text}")

    def ask(self, name: str, text: str, top_k: int) -> None:
        """Let an account, by its name, ask a question; arguments as of `Account.ask`."""
        self.accounts[name].ask(text, top_k)

    def http(self, service: str, account: str | None = None) -> httpx.Client:
        """Return a bare HTTP client, for what no library does; the caller closes it.

        Args:
            service: "prover" or "verifier".
            account: whose API key goes with every request; None for none.
        """
        transport = {"prover": self.prover.transport, "verifier": self.verifier.transport}[service]
        headers = {} if account is None else {"Authorization": f"Bearer {self.keys[account]}"}
        return httpx.Client(transport=transport, base_url=f"http://{service}.test", headers=headers)

    def _register(self, name: str) -> None:
        account = self.accounts[name]
        account.attempt(account.client.register)

    def _conclusion(self) -> Conclusion:
        outcome = self.verifier.auditor.outcome
        if outcome is None:
            raise InternalError(f"no verdict: {self.troubles}", where=str(self.prover.state))
        complaints = [line for each in self.accounts.values() for line in each.complaints]
        disputed = sum(len(each.rejected) for each in self.accounts.values())
        return Conclusion(
            outcome,
            (*complaints, *self.troubles),
            disputed if self.disputes else 0,
            self.verifier.auditor,
        )


PLAIN: Final = tuple((name, tenant, False) for name, tenant, _ in ACCOUNTS)

COPIED: Final = "document 3 of acme"
"""The text of three rows of acme."""


def vector_near(text: str) -> list[float]:
    """Return a vector that points where a text's embedding does, one entry put aside."""
    vector = HashEmbedder().embed([text])[0] / 7.0
    vector[0] = 0.5
    return [float(entry) for entry in vector]


class ExactScenario(Scenario):
    """Traffic in which somebody filters, somebody brings a vector, and rows are tied."""

    offer = EXACT
    roster = PLAIN

    def before_second(self, at: int) -> None:
        self.clock.at(at + 1)
        self.ask("alice", "the first question of alice", 3)
        self.clock.at(at + 2)
        self.ask("bob", COPIED, 2)
        self.accounts["carol"].ask("the first question of carol", 3, LEFT_SHELF)
        self.prover.checkpoint()
        self.clock.at(at + 5)
        self._register("dora")
        self.prover.checkpoint()
        self.clock.at(at + 20)
        self.accounts["alice"].ask(vector_near("document 5 of acme"), 2)
        self.accounts["bob"].ask("the second question of bob", 3, RECENT)


CHANGED: Final = "document 7 of acme, as it was written anew"
"""What stands in acme-7 from version 2 on; acme-5 is deleted then."""


class ChangingScenario(ExactScenario):
    """The same, and acme's documents change: withdrawn at first, then taken up by a version."""

    def before_second(self, at: int) -> None:
        super().before_second(at)
        self.clock.at(at + 22)
        documents = StoredDocuments(self.prover.service.store)
        documents.add("acme", changed_documents(), replace=True)
        self.ask("bob", "document 7 of acme", 3)
        self.prover.service.refresher.refresh(self.prover.policy.window, "acme")
        self.prover.checkpoint()

    def after_second(self, at: int) -> None:
        super().after_second(at)
        self.ask("bob", CHANGED, 3)


def changed_documents() -> list[Document]:
    """Return acme's documents after the change."""
    return [
        Document(each.id, CHANGED, each.attributes) if each.id == "acme-7" else each
        for each in shelved_documents("acme")
        if each.id != "acme-5"
    ]
