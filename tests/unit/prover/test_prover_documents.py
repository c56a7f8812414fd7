"""Ingesting files, the stored backend, tenants and accounts."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from databases import prover_tables
from hypothesis import given
from hypothesis import strategies as st
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.errors import Conflict, MalformedRequest, NotAuthenticated, UnsupportedError
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.prover.backends.interface import Document, attributes_text
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.command.ingest import cut, read_file, read_files
from ragaudit.prover.errors import (
    IndexInUse,
    MalformedDocument,
    UnknownAccount,
    UnknownTenant,
    UnknownWindow,
    WrongState,
)
from ragaudit.prover.store.accounts import Account, Accounts
from ragaudit.prover.store.database import SCHEMA, Store
from ragaudit.prover.store.states import State, check_state, check_transition
from ragaudit.prover.window.windows import Windows
from sqlalchemy import update


@pytest.fixture
def url(engine_name: str, make_database: Callable[..., str]) -> str:
    return make_database(engine_name, prover_tables)


@pytest.fixture
def store(url: str) -> Iterator[Any]:
    made = Store.create(url)
    yield made
    made.close()


def documents(count: int, prefix: str = "d") -> list[Document]:
    return [Document(f"{prefix}{n}", f"text {n}") for n in range(count)]


class TestIngest:
    def test_plain_text_is_cut_at_blank_lines(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("one.\r\n\r\ntwo.\n\nthree. " + "x" * 20 + "\n")
        found = read_file(tmp_path / "a.txt", "a.txt", passage=20)
        assert [each.id for each in found] == ["a.txt#0", "a.txt#1", "a.txt#2"]
        assert [each.content for each in found] == ["one.\n\ntwo.", "three.", "x" * 20]

    def test_markdown_is_cut_at_headings(self, tmp_path: Path) -> None:
        (tmp_path / "a.md").write_text("# One\ntext\n## Two\nmore\n")
        contents = [each.content for each in read_file(tmp_path / "a.md", "a.md")]
        assert contents == ["# One\ntext", "## Two\nmore"]

    def test_json_lines(self, tmp_path: Path) -> None:
        lines = [{"id": "x", "text": "short"}, {"id": "y", "text": "word " * 300}]
        (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
        found = read_file(tmp_path / "a.jsonl", "a.jsonl")
        assert [each.id for each in found] == ["x", "y#0", "y#1"]

    def test_json_lines_with_attributes(self, tmp_path: Path) -> None:
        """All passages of a text have the attributes of their line, in canonical JSON."""
        lines = [
            {"id": "x", "text": "short", "attributes": {"year": 2020.0, "lang": "en", "by": ["a"]}},
            {"id": "y", "text": "word " * 300, "attributes": {"lang": "de"}},
            {"id": "z", "text": "bare", "attributes": {}},
        ]
        (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
        found = read_file(tmp_path / "a.jsonl", "a.jsonl")
        german = '{"lang":"de"}'
        assert [(each.id, each.attributes) for each in found] == [
            ("x", '{"by":["a"],"lang":"en","year":2020}'),
            ("y#0", german), ("y#1", german), ("z", ""),
        ]  # fmt: skip

    def test_folders_in_name_order(self, tmp_path: Path) -> None:
        (tmp_path / "b").mkdir()
        (tmp_path / "b" / "z.txt").write_text("z")
        (tmp_path / "a.txt").write_text("a")
        (tmp_path / "ignored.bin").write_bytes(b"\x00")
        assert [each.id for each in read_files([tmp_path])] == ["a.txt#0", "b/z.txt#0"]

    @pytest.mark.parametrize(
        ("name", "data", "message"),
        [
            ("a.txt", b"\xff\xfe", "not UTF-8"),
            ("a.txt", b" \n", "empty file"),
            ("a.txt", b"", "empty file"),
            ("a.pdf", b"x", "unknown kind"),
            ("a.jsonl", b"{", "not a JSON object"),
            ("a.jsonl", b"[1]", "other members"),
            ("a.jsonl", b'{"id": 1, "text": "x"}', "not text"),
            ("a.jsonl", b'{"id": "a", "text": " "}', "empty text"),
            ("a.jsonl", b'{"id": "a", "text": "x", "more": 1}', "other members"),
            ("a.jsonl", b'{"id": "' + b"a" * 513 + b'", "text": "x"}', "id has a wrong length"),
            ("a.jsonl", b'{"id": "\\ud800", "text": "x"}', "lone surrogates"),
            ("a.jsonl", b'{"id": "a", "text": "x", "text": "y"}', "not a JSON object"),
            ("a.jsonl", b'{"id": "a", "text": "x", "attributes": null}', "are no object"),
            ("a.jsonl", b'{"id": "a", "text": "x", "attributes": {"a": NaN}}', "line 1.*canonical"),
            ("a.jsonl", b'{"id": "a", "text": "x", "attributes": {"a": 9007199254740993}}',
             "no canonical JSON"),
            ("a.jsonl", b'{"id": "a", "text": "x", "attributes": {"a": 1, "a": 2}}',
             "not a JSON object"),
            ("a.jsonl", b'{"id": "a", "text": "x", "attributes": {"a": "' + b"x" * 65_536 + b'"}}',
             "attributes too long"),
        ],
    )  # fmt: skip
    def test_bad_files(self, tmp_path: Path, name: str, data: bytes, message: str) -> None:
        (tmp_path / name).write_bytes(data)
        with pytest.raises(MalformedDocument, match=message):
            read_files([tmp_path / name])

    def test_missing_file_and_empty_folder(self, tmp_path: Path) -> None:
        with pytest.raises(MalformedDocument, match="cannot read"):
            read_files([tmp_path / "none.txt"])
        with pytest.raises(MalformedDocument, match="no documents"):
            read_files([tmp_path])

    @given(st.text(min_size=1), st.integers(min_value=1, max_value=50))
    def test_passages_are_short_and_lose_no_word(self, text: str, limit: int) -> None:
        passages = cut(text, limit)
        assert all(0 < len(each) <= limit for each in passages)
        assert "".join("".join(passages).split()) == "".join(text.split())


class TestDocuments:
    @pytest.mark.parametrize(
        ("name", "content", "attributes", "vector"),
        [
            ("", "x", "", None),
            ("a", "x" * 65_537, "", None),
            ("a", "x\ud800", "", None),
            ("a", "x", '"' + "x" * 65_535 + '"', None),
            ("a", "x", "", np.zeros(3)),
            ("a", "x", "", np.zeros((1, 3), dtype=np.float32)),
        ],
    )
    def test_refused(self, name: str, content: str, attributes: str, vector: Any) -> None:
        with pytest.raises(MalformedDocument):
            Document(name, content, attributes, vector)

    def test_blank_content_is_not_ingested(self, store: Store) -> None:
        with pytest.raises(MalformedDocument, match="empty content"):
            StoredDocuments(store).add("one", [Document("a", "x"), Document("b", " ")])

    def test_attributes_are_canonical(self) -> None:
        assert (
            attributes_text({"b": 1, "a": [2.5, None, "\u00e9"]}, "d")
            == '{"a":[2.5,null,"é"],"b":1}'
        )
        assert attributes_text({}, "d") == ""

    @pytest.mark.parametrize("value", [float("nan"), 2**53, b"bytes", "\ud800", {1: 2}])
    def test_attributes_without_canonical_json(self, value: object) -> None:
        with pytest.raises(MalformedDocument, match="document d: attributes"):
            attributes_text({"a": value}, "document d")

    def test_order_pages_and_fetch(self, store: Store) -> None:
        backend = StoredDocuments(store)
        assert backend.add("one", documents(5)) == 5
        assert backend.add("one", documents(2, "e")) == 7
        assert (backend.count("one"), backend.count("two"), backend.tenants()) == (7, 0, ["one"])
        pages = list(backend.pages("one", 3))
        assert [len(page) for page in pages] == [3, 3, 1]
        assert [each.id for page in pages for each in page] == [
            *(f"d{n}" for n in range(5)),
            "e0",
            "e1",
        ]
        found = backend.fetch("one", ["e1", "none", "d0"])
        assert [each and each.id for each in found] == ["e1", None, "d0"]
        backend.check()

    def test_replace(self, store: Store) -> None:
        backend = StoredDocuments(store)
        backend.add("one", documents(5))
        assert backend.add("one", documents(2), replace=True) == 2

    def test_duplicates_and_too_few_change_nothing(self, store: Store) -> None:
        backend = StoredDocuments(store)
        with pytest.raises(MalformedDocument, match="1 documents"):
            backend.add("one", documents(1))
        assert backend.tenants() == [] and Accounts(store).tenants() == []
        backend.add("one", documents(3))
        for more in (documents(1), [*documents(1, "x"), *documents(1, "x")]):
            with pytest.raises(MalformedDocument, match="duplicate document id"):
                backend.add("one", more)
        assert backend.count("one") == 3

    @pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a-", "x" * 65])
    def test_tenant_names(self, store: Store, name: str) -> None:
        with pytest.raises(MalformedRequest):
            StoredDocuments(store).add(name, documents(2))

    def test_documents_do_not_change_under_a_window(self, store: Store) -> None:
        backend, windows = StoredDocuments(store), Windows(store)
        backend.add("one", documents(3))
        draft(windows, policy=policy_for("one"))
        with pytest.raises(IndexInUse, match="w1"):
            backend.add("one", documents(2, "e"))
        assert backend.add("two", documents(2)) == 2  # the window does not serve it
        with store.write() as connection:
            windows.advance(connection, "w1", State.DRAFT, State.REFUSED)
        assert backend.add("one", documents(2, "e")) == 5


class TestAccounts:
    def test_life_of_a_key(self, store: Store) -> None:
        StoredDocuments(store).add("one", documents(2))
        accounts = Accounts(store)
        key = accounts.add("one", "ada")
        assert accounts.authenticate(key) == Account("ada", "one")
        fresh = accounts.rotate_key("ada")
        assert accounts.authenticate(fresh).name == "ada"
        with pytest.raises(NotAuthenticated):
            accounts.authenticate(key)
        assert accounts.all() == [Account("ada", "one")]

    def test_keys_are_stored_as_digests_only(self, store: Store, tmp_path: Path) -> None:
        StoredDocuments(store).add("one", documents(2))
        key = Accounts(store).add("one", "ada")
        store.close()
        for file in tmp_path.iterdir():
            assert key.encode() not in file.read_bytes()

    def test_refusals(self, store: Store) -> None:
        accounts = Accounts(store)
        with pytest.raises(UnknownTenant):
            accounts.add("one", "ada")
        StoredDocuments(store).add("one", documents(2))
        StoredDocuments(store).add("two", documents(2))
        accounts.add("one", "ada")
        with pytest.raises(Conflict):
            accounts.add("two", "ada")
        with pytest.raises(UnknownAccount):
            accounts.rotate_key("eve")
        for name in ("", "a b", "-", "x" * 128, "é"):
            with pytest.raises(MalformedRequest):
                accounts.add("one", name)
        for key in ("", "x", "\udcff"):
            with pytest.raises(NotAuthenticated):
                accounts.authenticate(key)


def policy_for(tenant: str) -> bytes:
    """The policy of the ledger's vectors, for another tenant."""
    vectors = Path(__file__).parents[2] / "vectors" / "receipts.json"
    policy = json.loads(json.loads(vectors.read_bytes())["policy"])
    return dumps({**policy, "tenants": [{"id": tenant, "owner_key": None}]})


def draft(windows: Windows, name: str = "w1", policy: bytes = b"{}") -> None:
    windows.create(
        name, policy=policy, embedder=b"{}", log_seed=bytes(32), noise_seed=bytes(32),
        pseudonym_key=bytes(32),
    )  # fmt: skip


ALLOWED = {
    ("draft", "committed"),
    ("draft", "refused"),
    ("draft", "abandoned"),
    ("committed", "countersigned"),
    ("committed", "refused"),
    ("committed", "abandoned"),
    ("countersigned", "activated"),
    ("activated", "open"),
    ("open", "closed"),
    ("closed", "challenged"),
    ("challenged", "archived"),
    # One that answers no more, with its verdict.
    *((state, "archived") for state in ("countersigned", "activated", "open", "closed")),
}


class TestWindows:
    def test_names_are_never_reused(self, store: Store) -> None:
        windows = Windows(store)
        draft(windows)
        with pytest.raises(Conflict):
            draft(windows)
        with pytest.raises(UnknownWindow):
            windows.get("w2")
        draft(windows, "w0")
        assert [each.name for each in windows.all()] == ["w1", "w0"]
        assert windows.unfinished() == ["w1", "w0"]

    @pytest.mark.parametrize("before", list(State))
    @pytest.mark.parametrize("after", list(State))
    def test_transitions(self, before: State, after: State) -> None:
        if (before, after) in ALLOWED:
            check_transition("w", before, after)
        else:
            with pytest.raises(WrongState):
                check_transition("w", before, after)

    def test_a_stale_transition_is_refused(self, store: Store) -> None:
        windows = Windows(store)
        draft(windows)
        with store.write() as connection:
            windows.advance(connection, "w1", State.DRAFT, State.COMMITTED)
        with pytest.raises(WrongState), store.write() as connection:
            windows.advance(connection, "w1", State.DRAFT, State.COMMITTED)
        assert windows.get("w1").state is State.COMMITTED

    def test_check_state(self) -> None:
        check_state("w", State.OPEN, (State.OPEN,))
        with pytest.raises(WrongState, match="closed"):
            check_state("w", State.CLOSED, (State.OPEN,))

    def test_secrets_are_not_shown(self, store: Store) -> None:
        windows = Windows(store)
        windows.create(
            "w", policy=b"{}", embedder=b"{}", log_seed=b"l" * 32, noise_seed=b"s" * 32,
            pseudonym_key=b"p" * 32,
        )  # fmt: skip
        shown = repr(windows.get("w"))
        assert not any(letter * 4 in shown for letter in "lsp")


class TestStore:
    def test_an_empty_database_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(StoreUnavailable, match="no tables"):
            Store.open(f"sqlite:///{tmp_path}/none.db")
        with pytest.raises(StoreUnavailable):
            Store.open(f"sqlite:///{tmp_path}/no/such/folder/none.db")

    def test_another_revision_is_refused(self, store: Store) -> None:
        with store.write() as connection:
            connection.execute(update(SCHEMA.revision).values(version_num="9999"))
        with pytest.raises(UnsupportedError, match="9999"):
            store.check()

    def test_creating_again_keeps_everything(self, store: Store, url: str) -> None:
        StoredDocuments(store).add("one", documents(2))
        again = Store.create(url)
        assert StoredDocuments(again).count("one") == 2
        again.check_writable()
        again.close()
