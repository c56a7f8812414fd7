"""What an owner of documents is shown with its own key, and what nobody else is (spec 8.6)."""

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exact_windows import start, texts
from ragaudit import core
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.documents import DocumentProof, RowProofs
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.lifecycle import owning
from ragaudit.prover.store.states import State
from scenario import WINDOW, ProverScenario

KEY = PrivateKey.from_seed(b"o" * 32).public.raw.hex()
OWNED: dict[str, Any] = {"owners": {"keys": {"one": KEY}}, "versions": True}
ROWS, DOCUMENTS, COUNTS = (
    f"/v1/owner/windows/w1/{each}" for each in ("rows", "documents", "counts")
)


def commit(rows: Sequence[Sequence[int]], blindings: Sequence[bytes]) -> list[bytes]:
    scalars = np.frombuffer(b"".join(blindings), dtype=np.uint8).reshape(-1, 32)
    made = bytes(core.commit_rows(np.array(rows, dtype=np.int16), scalars))
    return [made[at : at + 32] for at in range(0, len(made), 32)]


class Owner:
    """Asks with the key of a tenant's owner, and checks what it is given."""

    def __init__(self, scenario: ProverScenario, tenant: str = "one") -> None:
        self.scenario = scenario
        key = scenario.service.owners.give_key(tenant)
        self.headers = {"Authorization": f"Bearer {key}"}

    @property
    def policy(self) -> Policy:
        return Policy.parse(self.scenario.service.windows.get("w1").policy)

    def ask(self, **body: Any) -> Any:
        return self.scenario.api.post(ROWS, json=body, headers=self.headers)

    def rows(self, **body: Any) -> RowProofs:
        answer = self.ask(**body)
        assert answer.status_code == 200, answer.text
        proofs = RowProofs.parse(answer.content)
        proofs.verify(self.policy, commit)
        return proofs

    def get(self, path: str, **query: str) -> Any:
        return self.scenario.api.get(path, params=query, headers=self.headers)

    def document(self, name: str) -> DocumentProof:
        answer = self.get(DOCUMENTS, id=name)
        assert answer.status_code == 200, answer.text
        proof = DocumentProof.parse(answer.content)
        proof.verify(self.policy, commit)
        return proof


def closed(scenario: ProverScenario) -> None:
    scenario.hand_over()
    scenario.service.driver.checkpoint("w1")


def changed(scenario: ProverScenario, documents: list[Document]) -> int:
    StoredDocuments(scenario.service.store).add("one", documents, replace=True)
    version = scenario.service.refresher.refresh("w1", "one")
    scenario.service.driver.checkpoint("w1")
    return version


def test_rows_are_proven_by_ids_and_by_places(scenario: ProverScenario) -> None:
    start(scenario, **OWNED)
    owner = Owner(scenario)
    proofs = owner.rows(ids=["one-3", "nobody", "one-0"])
    third, nobody, first = proofs.rows
    assert nobody is None and third is not None and first is not None
    assert (third.id, third.content, first.id) == ("one-3", texts()[3].content, "one-0")
    assert third.attributes == texts()[3].attributes
    everything = owner.rows(positions=list(range(12)))
    assert [row.id for row in everything.rows if row] == [each.id for each in texts()]
    assert everything.index.version == proofs.index.version == 1
    assert (everything.index.tenant, everything.index.origin) == ("one", owner.policy.origin)


def test_a_version_is_the_one_in_force_or_the_one_asked_for(scenario: ProverScenario) -> None:
    start(scenario, **OWNED)
    owner = Owner(scenario)
    new = Document("one-new", "a new document")
    assert changed(scenario, [*texts()[1:], new]) == 2
    assert owner.rows(ids=["one-0"]).index.version == 1
    [gone, added] = owner.rows(ids=["one-0", "one-new"], version=2).rows
    assert gone is not None and gone.null and gone.marked and gone.content == ""
    assert added is not None and added.content == new.content and added.position == 12
    # What the store has no longer is not made up: its digest is shown, and no text.
    [before] = owner.rows(ids=["one-0"], version=1).rows
    assert before is not None and before.content is None and not before.null
    assert owner.get(COUNTS).json() == {
        "window": "w1", "tenant": "one", "in_force": 1,
        "versions": [
            {"version": 1, "rows": 12, "null_rows": 0, "time": None},
            {"version": 2, "rows": 13, "null_rows": 1,
             "time": owner.get(COUNTS).json()["versions"][1]["time"]},
        ],
    }  # fmt: skip
    scenario.clock.at(scenario.policy().activation_instants[1])
    scenario.service.driver.step("w1")
    assert owner.rows(ids=["one-0"]).index.version == 2


@pytest.mark.parametrize("final", [False, True])
def test_the_closed_log_says_which_documents_there_were(
    scenario: ProverScenario, final: bool
) -> None:
    start(scenario, **OWNED)
    owner = Owner(scenario)
    answer = owner.get(DOCUMENTS, id="one-0")
    assert answer.status_code == 409 and answer.json()["type"].endswith(":log-open")
    assert int(answer.headers["Retry-After"]) > 60 and "T" in answer.json()["expected"]
    changed(scenario, texts()[1:])
    closed(scenario)
    if final:
        scenario.service.open_windows.forget("w1")
    lives = {}
    for name in ("one-0", "one-1", "nobody"):
        proof = owner.document(name)
        lives[name] = (None if proof.listed is None else proof.listed.lives, proof.gone_since)
    assert lives == {
        "one-0": (((1, 1),), 2), "one-1": (((1, 2),), None), "nobody": (None, None),
    }  # fmt: skip
    assert owner.rows(positions=[0]).index.version == 2


def test_under_noise_the_last_row_says_that_a_document_is_gone(scenario: ProverScenario) -> None:
    noised = {**WINDOW, "privacy": "gaussian", **OWNED}
    scenario.service.create_window("w1", noised)
    scenario.drive(State.COUNTERSIGNED)
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().start)
    scenario.drive(State.OPEN)
    owner = Owner(scenario)
    names = [row.id for row in owner.rows(positions=list(range(12))).rows if row]
    store = StoredDocuments(scenario.service.store)
    kept = [each for page in store.pages("one", 50) for each in page if each.id != names[0]]
    assert changed(scenario, kept) == 2
    assert [each["null_rows"] for each in owner.get(COUNTS).json()["versions"]] == [0, 1]
    closed(scenario)
    gone, there = owner.document(names[0]), owner.document(names[1])
    assert gone.gone_since == 2 and there.gone_since is None
    assert gone.last_row is not None and not gone.last_row.row.marked


def test_a_reply_ends_before_it_is_too_long(
    scenario: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(scenario, **OWNED)
    owner = Owner(scenario)
    for most, rows in ((1, 1), (3 * 8300, 2)):
        monkeypatch.setattr(owning, "_REPLY_BYTES", most)
        assert len(owner.rows(positions=list(range(12))).rows) == rows


def test_only_an_owners_key_opens_it_and_it_opens_nothing_else(scenario: ProverScenario) -> None:
    start(scenario, **OWNED)
    owner = Owner(scenario)
    body = {"ids": ["one-0"]}
    for headers in (scenario.headers("ada"), scenario.operator, {}, {"Authorization": "Bearer x"}):
        assert scenario.api.post(ROWS, json=body, headers=headers).status_code == 401
        for path in (f"{DOCUMENTS}?id=one-0", COUNTS):
            assert scenario.api.get(path, headers=headers).status_code == 401
    query = {"query": "bread", "top_k": 1, "filter": ""}
    for method, path, value in (
        ("POST", "/v1/windows/w1/query", query),
        ("GET", "/v1/windows/w1/account", None),
        ("GET", "/v1/operator/windows", None),
    ):
        answer = scenario.api.request(method, path, json=value, headers=owner.headers)
        assert answer.status_code == 401, path
    scenario.service.owners.revoke_key("one")
    assert owner.ask(**body).status_code == 401


def test_an_owner_sees_no_other_tenants_rows(scenario: ProverScenario) -> None:
    """The key names the tenant: no id, place, version or member of a body leads to another."""
    start(scenario, **OWNED)
    one, two = Owner(scenario), Owner(scenario, "two")
    theirs = [row.id for row in two.rows(positions=list(range(12))).rows if row]
    assert theirs and not set(theirs) & {each.id for each in texts()}
    assert one.rows(ids=theirs).rows == (None,) * len(theirs)
    mine = one.rows(positions=[0]).index
    assert mine.document_secret != two.rows(positions=[0]).index.document_secret
    for more in ({"tenant": "two"}, {"window": "w1"}):
        assert one.ask(positions=[0], **more).status_code == 400
    shown = json.dumps(one.get(COUNTS).json())
    assert "two" not in shown
    closed(scenario)
    assert one.document(theirs[0]).listed is None


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"ids": ["a"], "positions": [1]}, 400),
        ({"ids": []}, 400),
        ({"ids": [""]}, 400),
        ({"ids": ["x" * 513]}, 400),
        ({"ids": ["x"] * 501}, 400),
        ({"positions": [-1]}, 400),
        ({"positions": ["1"]}, 400),
        ({"positions": [1.5]}, 400),
        ({"positions": [0], "version": 0}, 400),
        ({"positions": [0], "version": 2}, 404),
        ({"positions": [12]}, 404),
    ],
)
def test_other_requests_are_refused(
    open_owned: ProverScenario, body: dict[str, Any], status: int
) -> None:
    answer = Owner(open_owned).ask(**body)
    assert answer.status_code == status, answer.text


@pytest.fixture(scope="module")
def open_owned(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from scenario import scenarios

    with scenarios(tmp_path_factory.mktemp("owned")) as make:
        scenario = make()
        start(scenario, **OWNED)
        yield scenario


def test_a_bad_id_and_a_window_without_owners(scenario: ProverScenario) -> None:
    start(scenario)
    owner = Owner(scenario)
    answer = owner.ask(ids=["one-0"])
    assert answer.status_code == 409 and "no owners" in answer.text
    assert owner.get("/v1/owner/windows/w9/counts").status_code == 404


def test_the_audit_stream_tells_of_each_call_without_an_id(
    scenario: ProverScenario, tmp_path: Path
) -> None:
    stream = tmp_path / "audit.jsonl"
    start(scenario, **OWNED)
    changed_operation = scenario.settings.operation.model_copy(update={"audit_file": stream})
    scenario.settings = scenario.settings.model_copy(update={"operation": changed_operation})
    scenario.restart()
    owner = Owner(scenario)
    with scenario.service.observer:
        owner.rows(ids=["one-3"])
        owner.rows(positions=[1, 2])
        owner.get(COUNTS)
        assert owner.get(DOCUMENTS, id="one-4").status_code == 409
    lines = stream.read_text()
    events = [json.loads(line) for line in lines.splitlines()]
    assert [each["event"]["action"] for each in events] == [
        "proveRows", "proveRows", "countRows", "proveDocument",
    ]  # fmt: skip
    digests = [[sha256(name.encode()).hexdigest()] for name in ("one-3", "one-4")]
    looks = [each["ragaudit"]["look"] for each in events]
    assert looks[0] == {"ids": digests[0], "positions": 0}
    assert looks[1:3] == [{"ids": [], "positions": 2}, {"ids": [], "positions": 0}]
    assert looks[3] == {"ids": digests[1], "positions": 0}
    assert all(each["user"]["roles"] == ["owner"] for each in events)
    assert events[3]["event"]["outcome"] == "failure"
    assert "one-3" not in lines and "one-4" not in lines
