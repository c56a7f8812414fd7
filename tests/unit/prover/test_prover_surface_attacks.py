"""What an application could try against the surfaces of a real window."""

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from ragaudit.ledger.messages.bodies import AccessBody
from ragaudit.prover.errors import BackendUnavailable, MalformedQuery, UnknownAccount
from ragaudit.prover.lifecycle.retention import Export
from ragaudit.prover.settings import DelegationSettings
from ragaudit.prover.surfaces.caller import named_user, names_user
from ragaudit.prover.surfaces.prover_port import ServicePort
from scenario import ProverScenario
from starlette.datastructures import Headers
from surface_window import VECTOR, WINDOW, logged, start

BATCH = "/collections/handbook/points/query/batch"


class Store:
    """Takes writes, and notes in which order they and the marks come."""

    def __init__(self, *, fails: bool = False, full: bool = False) -> None:
        self.events: list[str] = []
        self._fails, self._full = fails, full
        self.backend = self.refresher = self

    def mark_stale(self, tenant: str) -> None:
        if self._full:
            raise BackendUnavailable("no room")
        self.events.append(f"{tenant} is stale")

    def forward_write(self, tenant: str, operation: str, body: bytes) -> Any:
        self.events.append("write")
        if self._fails:
            raise BackendUnavailable("the answer is lost")
        return SimpleNamespace(status=201, body=body)


def port(store: Store) -> ServicePort:
    return ServicePort(store)  # type: ignore[arg-type]


class TestWrites:
    """A write is marked before it is passed on, so that no end of the process hides it."""

    def test_marked_before_and_after(self) -> None:
        store = Store()
        assert port(store).forward("one", "add", b"{}").status == 201
        # After, too: a version that is read between mark and write has the mark, not the write.
        assert store.events == ["one is stale", "write", "one is stale"]

    def test_marked_whatever_comes_of_it(self) -> None:
        store = Store(fails=True)
        with pytest.raises(BackendUnavailable):
            port(store).forward("one", "add", b"{}")
        assert store.events == ["one is stale", "write", "one is stale"]

    def test_without_a_mark_nothing_is_written(self) -> None:
        store = Store(full=True)
        with pytest.raises(BackendUnavailable):
            port(store).forward("one", "add", b"{}")
        assert store.events == []


@pytest.mark.parametrize("length", [253, 254, 255])
def test_a_batch_whose_keys_become_too_long_costs_nothing(
    scenario: ProverScenario, length: int
) -> None:
    start(scenario, WINDOW)
    before = logged(scenario)
    searches = [{"query": [1.0 + n, *VECTOR[1:]], "limit": 1} for n in range(11)]
    headers = {**scenario.headers("ada"), "Idempotency-Key": "k" * length}
    answer = scenario.api.post(BATCH, json={"searches": searches}, headers=headers)
    # The eleventh key has two digits: ten queries would be charged before it is refused.
    assert answer.status_code == 400 and logged(scenario) == before


class TestEndUsers:
    """Names of end users are invented by whoever sends them."""

    DELEGATION: ClassVar[dict[str, Any]] = {"accounts": ["ada"], "register_tenants": ["one", "two"]}

    def search(self, scenario: ProverScenario, *users: bytes, account: str = "ada") -> Any:
        given = [
            (name.encode(), value.encode()) for name, value in scenario.headers(account).items()
        ]
        return scenario.api.post(
            "/v1/vector_stores/handbook/search",
            json={"query": "bread", "max_num_results": 1},
            headers=[*given, *((b"Ragaudit-User", user) for user in users)],
        )

    def accounts(self, scenario: ProverScenario) -> list[str | tuple[str, str]]:
        return [
            each.name if each.user is None else (each.name, each.user)
            for each in scenario.service.accounts.all()
        ]

    def test_no_more_of_them_than_slots(self, scenario: ProverScenario) -> None:
        start(scenario, WINDOW, delegation=self.DELEGATION)
        for n in range(2):
            assert self.search(scenario, b"user%d" % n).status_code == 503
        # Four slots, two of which were taken before.
        for n in range(2, 5):
            answer = self.search(scenario, b"user%d" % n)
            assert answer.status_code == 409 and "no slot is left" in answer.text
        assert self.accounts(scenario) == ["ada", ("ada", "user0"), ("ada", "user1"), "bob", "cyd"]

    def test_paths_that_ask_nothing_make_no_more_of_them(self, scenario: ProverScenario) -> None:
        start(scenario, WINDOW, delegation=self.DELEGATION)
        for n in range(5):
            headers = {**scenario.headers("ada"), "Ragaudit-User": f"user{n}"}
            for path in (
                "/collections",
                "/collections/handbook/points/scroll",
                "/v1/receipts/w1.0",
            ):
                scenario.api.get(path, headers=headers)
        assert len(self.accounts(scenario)) == 5

    def test_two_of_them_are_refused(self, scenario: ProverScenario) -> None:
        start(scenario, WINDOW, delegation=self.DELEGATION)
        before = logged(scenario)
        answer = self.search(scenario, b"grace", b"hedy")
        assert answer.status_code == 400 and "twice" in answer.text
        assert self.search(scenario, b"grace", b"grace").status_code == 400
        assert self.search(scenario, b"grace", account="bob").status_code == 403
        assert logged(scenario) == before and len(self.accounts(scenario)) == 3

    def test_asked_by_the_provers_own_path_too(self, scenario: ProverScenario) -> None:
        start(scenario, WINDOW, delegation=self.DELEGATION)
        before = logged(scenario)
        for account, status in (("ada", 503), ("bob", 409)):
            answer = scenario.api.post(
                "/v1/windows/w1/query",
                json={"query": "bread", "kind": "text", "top_k": 1},
                headers={**scenario.headers(account), "Ragaudit-User": "grace"},
            )
            # Neither asks in its own name: grace waits to be activated, and bob may name nobody.
            assert answer.status_code == status, answer.text
        # Her registration, and no record.
        assert logged(scenario) == before + 1 and ("ada", "grace") in self.accounts(scenario)

    def test_its_account_and_registration_are_its_own(self, scenario: ProverScenario) -> None:
        start(scenario, WINDOW, delegation=self.DELEGATION)
        named = {"Ragaudit-User": "grace"}
        shown = {}
        for account, more in (("ada", {}), ("ada", named), ("bob", named)):
            headers = {**scenario.headers(account), **more}
            if account == "bob":
                proof = scenario.api.get("/v1/windows/w1/account/count", headers=headers)
                assert proof.status_code == 409, "an account that may name nobody did"
            answers = [
                scenario.api.get("/v1/windows/w1/account", headers=headers),
                scenario.api.post("/v1/windows/w1/registration", json={}, headers=headers),
            ]
            if account == "bob":
                assert [each.status_code for each in answers] == [409, 409]
                continue
            assert [each.status_code for each in answers] == [200, 200], answers[1].text
            own, registered = (each.json() for each in answers)
            assert own["pseudonym"] == registered["pseudonym"]
            shown[len(more)] = own["pseudonym"]
        live = scenario.service.open_windows.get("w1")
        assert shown == {
            0: live.pseudonym_of("ada").hex(),
            1: live.pseudonym_of("ada", "grace").hex(),
        }

    def test_its_lines_of_the_audit_stream_and_its_export_are_its_own(
        self, scenario: ProverScenario, tmp_path: Path
    ) -> None:
        start(scenario, WINDOW, delegation=self.DELEGATION)
        stream = tmp_path / "audit.jsonl"
        settings = scenario.settings
        operation = settings.operation.model_copy(update={"audit_file": stream})
        scenario.settings = settings.model_copy(update={"operation": operation})
        scenario.restart()
        with scenario.service.observer:
            for account, user in (("ada", b"grace"), ("ada", b""), ("bob", b"grace")):
                self.search(scenario, *([user] if user else []), account=account)
        users = [json.loads(line)["user"] for line in stream.read_text().splitlines()]
        grace = {"name": "ada", "effective": {"name": "grace"}}
        # Who tries to name somebody, and may not, is in it too.
        assert users == [grace, {"name": "ada"}, {"name": "bob"}]
        file = io.BytesIO()
        said = AccessBody.from_json({"reader": "B. Ito", "reason": "a test"})
        key, clock = scenario.service.retention.key, scenario.clock
        Export(scenario.service.store, key, clock).write("ada", (), said, file, user="grace")
        live = scenario.service.open_windows.get("w1")
        assert live.pseudonym_of("ada", "grace").hex() in file.getvalue().decode()
        with pytest.raises(UnknownAccount, match="end user"):
            Export(scenario.service.store, key, clock).write("bob", (), said, file, user="grace")

    def test_one_of_them_by_any_way(self, scenario: ProverScenario) -> None:
        start(scenario, WINDOW, delegation=self.DELEGATION)
        self.search(scenario, "Zoë".encode())
        assert ("ada", "Zoë") in self.accounts(scenario)


def test_two_idempotency_keys_are_refused(scenario: ProverScenario) -> None:
    start(scenario, WINDOW)
    before = logged(scenario)
    given = [*scenario.headers("ada").items(), ("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    answer = scenario.api.post(
        "/v1/vector_stores/handbook/search", json={"query": "bread"}, headers=given
    )
    assert answer.status_code == 400 and logged(scenario) == before


@pytest.mark.parametrize(
    "raw",
    [
        [(b"ragaudit-user", b"\xff")],
        [(b"ragaudit-user", b"a"), (b"ragaudit-user", b"a")],
        [(b"ragaudit-user", b"a"), (b"ragaudit-user-token", b"t")],
        [(b"ragaudit-user-token", b"t"), (b"ragaudit-user-token", b"t")],
    ],
)
def test_a_user_has_one_name(raw: list[tuple[bytes, bytes]]) -> None:
    keys = {"issuer": "i", "audience": "a", "jwks_url": "http://keys.example"}
    settings = DelegationSettings.model_validate(
        {"accounts": ("ada",), "jwt": keys, "header": "Ragaudit-User"}
    )
    with pytest.raises(MalformedQuery):
        named_user(settings, Headers(raw=raw), lambda token: token)
    good = Headers(raw=[(b"ragaudit-user", "Zoë".encode())])
    assert named_user(settings, good, lambda token: token) == "Zoë"
    token = Headers(raw=[(b"ragaudit-user-token", b"t")])
    assert named_user(settings, token, lambda given: f"of {given}") == "of t"


def test_beside_tokens_a_bare_name_counts_only_where_it_was_asked_for() -> None:
    keys = {"issuer": "i", "audience": "a", "jwks_url": "http://keys.example"}
    for given, header in (
        ({}, "Ragaudit-User"),
        ({"jwt": None}, "Ragaudit-User"),
        ({"jwt": keys}, None),
        ({"jwt": keys, "header": "X-User"}, "X-User"),
        ({"header": None}, None),
    ):
        settings = DelegationSettings.model_validate(given)
        assert settings.header == header, given
        # As settings are written and read again.
        assert DelegationSettings.model_validate(settings.model_dump()).header == header
    only_tokens = DelegationSettings.model_validate({"jwt": keys})
    assert not names_user(only_tokens, Headers({"Ragaudit-User": "grace"}))
    assert names_user(only_tokens, Headers({"Ragaudit-User-Token": "t"}))
