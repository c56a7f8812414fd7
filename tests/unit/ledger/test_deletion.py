"""The statements that something was deleted: what they must name to be believed."""

from dataclasses import replace
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.signing import PrivateKey, SignatureRejected
from ragaudit.ledger.log.tree import TreeHead
from ragaudit.ledger.messages.custody import Deletion, ProviderDeletion
from ragaudit.ledger.messages.verdict import Verdict
from report_cases import outcome, signed

KEY = PrivateKey.from_seed(b"v" * 32)
OTHER = PrivateKey.from_seed(b"o" * 32)
ITEMS = {"confidential/records.bin": "cd" * 32}
VERDICT = signed(outcome())
ORIGIN = "rag.example/ragaudit/w1"
HEAD = TreeHead(27, b"r" * 32)


def deletion(**changes: Any) -> Deletion:
    members: dict[str, Any] = {
        "origin": ORIGIN,
        "verdict": bytes.fromhex(VERDICT.digest),
        "items": ITEMS,
        "checkpoint": HEAD,
        "time": 1_700_000_000_000,
    }
    return Deletion(**{**members, **changes}).signed(KEY)


def authenticate(
    made: Deletion,
    key: PrivateKey = KEY,
    verdict: Verdict = VERDICT,
    checkpoint: TreeHead | None = HEAD,
) -> None:
    made.authenticate(key.public, verdict, origin=ORIGIN, checkpoint=checkpoint)


def test_all_that_was_confidential_is_accepted() -> None:
    authenticate(deletion())
    authenticate(deletion(checkpoint=None), checkpoint=None)


def test_another_window_is_rejected() -> None:
    with pytest.raises(RejectedError, match="another origin"):
        authenticate(deletion(origin="rag.example/ragaudit/w2"))


@pytest.mark.parametrize("head", [None, TreeHead(26, b"r" * 32), TreeHead(27, b"s" * 32)])
def test_another_checkpoint_is_rejected(head: TreeHead | None) -> None:
    with pytest.raises(RejectedError, match="another checkpoint"):
        authenticate(deletion(checkpoint=head))


def test_it_is_read_as_it_was_written() -> None:
    for made in (deletion(), deletion(checkpoint=None), deletion(items={})):
        data = canonical_json.dumps(made.to_json())
        assert Deletion.from_json(canonical_json.loads(data)) == made
        assert made.to_json()["format"] == "ragaudit/v1/deletion"


@pytest.mark.parametrize(
    "items",
    [
        {},
        {"confidential/records.bin": "ab" * 32},
        {**ITEMS, "confidential/claims.json": "ab" * 32},
    ],
)
def test_less_more_or_others_than_the_verdict_names_is_rejected(items: dict[str, str]) -> None:
    with pytest.raises(RejectedError, match="not the confidential items"):
        authenticate(deletion(items=items))


def test_another_verdict_is_rejected() -> None:
    with pytest.raises(RejectedError, match="another verdict"):
        authenticate(deletion(), verdict=signed(outcome("FAIL")))


@pytest.mark.parametrize(
    "changes",
    [{"time": 1}, {"items": {}}, {"checkpoint": None}, {"origin": "x"}, {"verdict": b"v" * 32}],
)
def test_a_changed_statement_is_rejected(changes: dict[str, Any]) -> None:
    with pytest.raises(SignatureRejected):
        authenticate(replace(deletion(), **changes))


def test_another_key_is_rejected() -> None:
    with pytest.raises(SignatureRejected):
        authenticate(deletion(), OTHER)


@for_each(
    ("name", "value"),
    [
        ("items", {"public/policy.json": "ab" * 32}),
        ("items", {"confidential/other.bin": "ab" * 32}),
        ("checkpoint", {"size": 0, "root": "ab" * 32}),
    ],
)
def test_other_members_are_refused(name: str, value: object) -> None:
    with pytest.raises(MalformedError):
        Deletion.from_json({**deletion().to_json(), name: value})


def by_provider(**changes: Any) -> ProviderDeletion:
    members: dict[str, Any] = {
        "origin": ORIGIN,
        "verdict": bytes.fromhex(VERDICT.digest),
        "entries": 20,
        "checkpoint": HEAD,
        "time": 1_700_000_000_000,
    }
    return ProviderDeletion(**{**members, **changes}).signed(KEY)


def check_provider(
    made: ProviderDeletion, key: PrivateKey = KEY, checkpoint: TreeHead | None = HEAD
) -> None:
    made.authenticate(key.public, VERDICT, origin=ORIGIN, checkpoint=checkpoint, public=7)


class TestProvider:
    def test_every_entry_that_is_not_public_is_accepted(self) -> None:
        check_provider(by_provider())
        for entries in (0, 20):  # nobody else knows how many
            check_provider(by_provider(checkpoint=None, entries=entries), checkpoint=None)

    @pytest.mark.parametrize("entries", [0, 19, 20])
    def test_one_that_lost_the_end_of_its_log_names_no_checkpoint(self, entries: int) -> None:
        check_provider(by_provider(checkpoint=None, entries=entries))
        with pytest.raises(RejectedError, match="another number of entries"):
            check_provider(by_provider(checkpoint=None, entries=21 + entries))

    def test_a_checkpoint_that_is_no_evidence_is_rejected(self) -> None:
        with pytest.raises(RejectedError, match="another checkpoint"):
            check_provider(by_provider(), checkpoint=None)

    def test_it_is_read_as_it_was_written(self) -> None:
        for made in (by_provider(), by_provider(checkpoint=None), by_provider(verdict=None)):
            assert ProviderDeletion.parse(made.encode()) == made

    @pytest.mark.parametrize(
        ("changes", "what"),
        [
            ({"origin": "rag.example/ragaudit/w2"}, "origin"),
            ({"verdict": b"v" * 32}, "verdict"),
            ({"verdict": None}, "verdict"),
            ({"checkpoint": TreeHead(27, b"s" * 32)}, "checkpoint"),
            ({"entries": 19}, "number of entries"),
            ({"entries": 21}, "number of entries"),
        ],
    )
    def test_another_is_rejected(self, changes: dict[str, Any], what: str) -> None:
        with pytest.raises(RejectedError, match=f"another {what}"):
            check_provider(by_provider(**changes))

    @pytest.mark.parametrize("changes", [{"time": 1}, {"entries": 19}, {"verdict": None}])
    def test_a_changed_one_is_rejected(self, changes: dict[str, Any]) -> None:
        with pytest.raises(SignatureRejected):
            check_provider(replace(by_provider(), **changes))

    def test_the_verifiers_is_none_of_it(self) -> None:
        with pytest.raises(SignatureRejected):
            check_provider(by_provider(), OTHER)
        with pytest.raises(MalformedError):
            ProviderDeletion.parse(deletion().encode())

    @pytest.mark.parametrize(
        ("name", "value"),
        [("entries", -1), ("entries", 2**53), ("entries", None), ("verdict", 1), ("more", 1)],
    )
    def test_other_members_are_refused(self, name: str, value: object) -> None:
        with pytest.raises(MalformedError):
            ProviderDeletion.from_json({**by_provider().to_json(), name: value})
