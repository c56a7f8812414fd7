"""Parts of `ragaudit up`: the shared clock, which collections are served, what is compared."""

import io
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from for_each import for_each
from ragaudit import http
from ragaudit.cli.up.command import app
from ragaudit.cli.up.run import SharedClock, dispute_key_file, prepare
from ragaudit.cli.up.shadow import ROUNDING, Compared, Exact, Shadow, Tally
from ragaudit.cli.up.show import Shown
from ragaudit.cli.up.store import Collection, chosen, chroma_collections
from ragaudit.encoding.console import Console
from ragaudit.encoding.errors import MalformedError, UnavailableError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.settings import WriteSettings, load_settings
from ragaudit.prover.store.accounts import Accounts
from ragaudit.prover.store.database import Store
from ragaudit.serving.clock import UNTIL_CONFIRMED, system_clock
from ragaudit.verifier import settings as verifier_settings
from typer.testing import CliRunner

DAY = 86_400_000


def test_two_clocks_of_one_file_move_on_together_and_no_service_sees_a_step(tmp_path: Path) -> None:
    mine, theirs = SharedClock(tmp_path / "clock"), SharedClock(tmp_path / "clock")
    service = theirs.even(UNTIL_CONFIRMED)
    before = service()
    mine.reach(before + DAY)
    assert before + DAY <= service() < before + 2 * DAY
    assert not service.stepped
    assert mine.ahead == theirs.ahead > DAY - 60_000
    ahead = mine.ahead
    mine.reach(before)  # it has passed
    assert mine.ahead == ahead
    assert system_clock() < before + DAY


def test_a_reader_never_sees_half_a_number(tmp_path: Path) -> None:
    clock, stop = SharedClock(tmp_path / "clock"), threading.Event()
    seen: list[int] = []

    def read() -> None:
        while not stop.is_set():
            seen.append(clock.ahead)

    reader = threading.Thread(target=read)
    reader.start()
    for step in range(1, 300):
        clock.reach(system_clock() + step * 10**9)
    stop.set()
    reader.join()
    assert seen == sorted(seen) and all(each == 0 or each > 10**8 for each in seen)


def collection(name: str, rows: int = 10, dimension: int = 8, metric: str = "cosine") -> Collection:
    return Collection(name, rows, dimension, metric)


def test_what_cannot_be_served_is_left_out_with_its_reason() -> None:
    found = chosen(
        [
            collection("Docs_1"), collection("docs-1"), collection("empty", 0),
            collection("inner", metric="inner-product"), collection("wide", dimension=9),
        ],
        [],
    )  # fmt: skip
    assert [(each.name, each.tenant) for each in found.served] == [
        ("Docs_1", "docs-1"),
        ("docs-1", "docs-1-2"),
    ]
    reasons = dict(found.left_out)
    assert reasons["empty"].startswith("0 rows") and "largest norm" in reasons["inner"]
    assert reasons["wide"] == "d = 9, cosine: unlike Docs_1"
    assert (found.metric, found.least_rows) == ("cosine", 10)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["none"], "no collection 'none'"),
        (["empty"], "nothing to serve: empty: 0 rows"),
        (["docs", "far"], "not all can be served: far: d = 8, l2"),
    ],
)
def test_what_was_named_must_be_served(names: list[str], message: str) -> None:
    there = [collection("docs"), collection("empty", 0), collection("far", metric="l2")]
    with pytest.raises(MalformedError, match=message):
        chosen(there, names)


def test_an_empty_store_is_told() -> None:
    with pytest.raises(MalformedError, match="nothing to serve: no collections"):
        chosen([], [])


def test_both_parties_are_set_up_and_pin_each_other(tmp_path: Path) -> None:
    found = chosen([collection("docs"), collection("more")], [])
    backend = {
        "kind": "chroma",
        "chroma": {"url": "http://127.0.0.1:1", "collections": {"docs": "docs", "more": "more"}},
    }
    overrides = {"window": {"public_columns": {"year": "integer"}, "filters": True}}
    parties = prepare(tmp_path, found, backend, port=0, overrides=overrides)
    settings = load_settings(tmp_path / "prover" / "prover.yaml")
    assert settings.verifier.unpinned == [] and not settings.verifier.allow_unpinned
    assert settings.verifier.url == parties.verifier_url
    assert settings.surfaces.collections == {"docs": "docs", "more": "more"}
    assert settings.window.privacy == "none" and settings.window.top_k_max == 9
    assert settings.window.public_columns == {"year": "integer"}
    assert set(parties.keys) == {"docs", "more"} and len(set(parties.keys.values())) == 2
    # Its own application writes, as it did to the store; nobody else, and nobody where it is off.
    assert settings.surfaces.writes == WriteSettings(accounts=("docs-app", "more-app"))
    assert parties.writes
    with closing(Store.open(settings.store.url)) as store:
        kept = {each.tenant: each.dispute_key for each in Accounts(store).all()}
    files = {tenant: dispute_key_file(tmp_path, tenant) for tenant in parties.keys}
    seeds = {tenant: bytes.fromhex(file.read_text()) for tenant, file in files.items()}
    assert kept == {name: PrivateKey.from_seed(seed).public.raw for name, seed in seeds.items()}
    assert all(file.stat().st_mode & 0o077 == 0 for file in files.values())
    assert parties.keys["docs"] not in repr(parties) and parties.operator_token not in repr(parties)
    verifier = verifier_settings.load(tmp_path / "verifier" / "verifier.yaml")
    assert parties.verifier_url.endswith(f":{verifier.listen.port}")


def test_what_becomes_of_writes_is_said(tmp_path: Path) -> None:
    found, console = chosen([collection("docs")], []), Console()
    chroma = {
        "kind": "chroma",
        "chroma": {"url": "http://127.0.0.1:1", "collections": {"docs": "docs"}},
    }
    for name, overrides, said in (
        ("as it is", {}, "What your application writes is passed on to the store"),
        ("read only", {"surfaces": {"writes": False}}, "What your application writes is refused."),
    ):
        parties = prepare(tmp_path / name, found, chroma, port=0, overrides=overrides)
        with console.capture() as shown:
            Shown(console).ready(parties, found)
        assert said in shown.get(), name
    refused = CliRunner().invoke(app, ["--chroma", "http://127.0.0.1:1", "--shadow", "--read-only"])
    assert refused.exit_code == 2 and "--read-only" in refused.output


class Rows:
    """A backend of a few stored vectors."""

    def __init__(self, vectors: Any) -> None:
        self.vectors = vectors

    def pages(self, tenant: str, rows: int) -> Iterator[Sequence[Document]]:
        found = [Document(f"d{n}", "", "", vector) for n, vector in enumerate(self.vectors)]
        for at in range(0, len(found), rows):
            yield found[at : at + rows]


def exact(vectors: Any) -> Exact:
    return Exact(Rows(np.array(vectors, dtype=np.float32)), "docs", "cosine", 2)  # type: ignore[arg-type]


def test_the_exact_ranking_breaks_ties_by_row_and_heeds_a_filter() -> None:
    rows = exact([[1, 0], [0, 1], [1, 0], [2, 0], [1, 1]])
    query = np.array([3, 0.1], dtype=np.float32)
    assert rows.first(query, 3, None) == ("d0", "d2", "d3")
    assert rows.first(query, 2, ["d4", "d1", "unknown"]) == ("d4", "d1")
    assert rows.first(query, 9, []) == ()


def test_answers_that_differ_by_rounding_are_told_from_those_that_do_not() -> None:
    near = ROUNDING / 4
    rows = exact([[1, near], [1, 0], [1, 1], [0, 1]])
    query = np.array([1, 0], dtype=np.float32)
    first = rows.first(query, 3, None)
    assert first == ("d1", "d0", "d2")
    tally = Tally()
    for store in (first, ("d0", "d1", "d2"), ("d1", "d0", "d3"), ("d1", "d2", "d0")):
        tally.add(Compared(store, first, gap=rows.gap(query, store, first)))
    assert tally.rounded == 1 and tally.to_json()["by_rounding"] == 1
    text = "\n".join(tally.lines())
    assert "1 of those that differ do so only where scores are closer than 7.0e-04" in text
    assert "instead of d2 (scores 7.1e-01 apart)" in text
    # Fewer rows, or rows of later, are no rounding.
    assert rows.gap(query, ("d1",), first) is None
    assert rows.gap(query, ("d1", "d0", "new"), first) is None
    assert not Compared(("d1",), first).rounded
    assert rows.gap(query, first, first) == 0.0 and not Compared(first, first, gap=0.0).rounded


def test_a_tally_has_no_verdict_and_says_what_differs() -> None:
    tally = Tally()
    tally.add(Compared(("a", "b"), ("a", "b")))
    tally.add(Compared(("b", "a"), ("a", "b"), after_write=True))
    tally.add(Compared(("a", "c"), ("a", "b")))
    tally.refused["get: reading a collection"] += 2
    tally.columns["year"] += 1
    shown = tally.to_json()
    assert shown["verdict"] is None and "PASS" not in json.dumps(shown)
    assert (shown["same"], shown["reordered"], shown["other_rows"]) == (1, 1, 1)
    assert shown["recall"] == pytest.approx(5 / 6) and shown["after_write"] == 1
    text = "\n".join(tally.lines())
    assert "no verdict" in text and "PASS" not in text
    assert "the store returned c instead of b" in text and "2 x get: reading a collection" in text
    assert "declared public: year" in text
    assert Tally().recall is None and "0 queries" in "\n".join(Tally().lines())


BASE = "/api/v2/tenants/default_tenant/databases/default_database/collections"


@for_each(
    ("method", "path", "body", "refused"),
    [
        ("POST", f"{BASE}/x/get", {"limit": 3}, "get: reading a collection"),
        ("POST", f"{BASE}/x/get", {"ids": ["d1"]}, None),
        ("POST", f"{BASE}/x/search", {}, "POST of 'search', which is not served"),
        ("POST", f"{BASE}/x/fork", {}, "POST of 'fork', which is not served"),
        ("DELETE", f"{BASE}/x", {}, "DELETE of 'x', which is not served"),
        ("GET", f"{BASE}/x/count", {}, None),
        (
            "POST",
            f"{BASE}/x/query",
            {"query_embeddings": [[1]], "where_document": {"$contains": "word"}},
            "query: where_document is not served",
        ),
    ],
)
def test_what_a_prover_refuses_is_counted(
    method: str, path: str, body: Any, refused: str | None
) -> None:
    tally = Tally()
    told: list[str] = []
    shadow = Shadow("http://127.0.0.1:1", {}, tally, told.append)
    shadow.look(method, path, {}, json.dumps(body).encode(), b'{"ids": [[]]}')
    found = list(tally.refused)
    if refused is None:
        assert found == []
    else:
        assert len(found) == 1 and found[0].startswith(refused.split(":")[0]), found
        assert "word" not in found[0]


def test_a_comparison_that_fails_is_told_and_never_raises() -> None:
    told: list[str] = []
    shadow = Shadow("http://127.0.0.1:1", {}, Tally(), told.append)
    shadow.look("POST", f"{BASE}/x/query", {}, b"not JSON", b"nor this")
    shadow.look("POST", f"{BASE}/x/query", {}, b'{"query_embeddings": [[1]]}', b'{"ids": [["a"]]}')
    assert told[-1] == "not compared: ConnectError"


def test_answers_that_do_not_differ_are_counted_and_no_lines() -> None:
    told: list[str] = []
    counted: list[str] = []
    rows = {"handbook": exact([[1, 0], [0, 1], [1, 1]])}
    shadow = Shadow("http://127.0.0.1:1", rows, Tally(), told.append, counted.append)
    shadow._names["x"] = "handbook"
    body = json.dumps({"query_embeddings": [[1, 0.1]], "n_results": 2}).encode()
    for ids in (["d0", "d2"], ["d0", "d2"], ["d2", "d0"], ["d0", "d1"]):
        shadow.look("POST", f"{BASE}/x/query", {}, body, json.dumps({"ids": [ids]}).encode())
    assert told == [
        "handbook: K = 2: the same rows in another order",
        "handbook: K = 2: 1 of 2 rows in common",
    ]
    assert counted[1::2] == ["2 queries compared, 0 differ", "4 queries compared, 2 differ"]
    for _ in range(3):
        shadow.look("POST", f"{BASE}/x/get", {}, b'{"limit": 3}', b"{}")
    assert len(told) == 3 and told[2].startswith("a prover would have refused: get: reading")


def test_a_difference_is_shown_with_its_time() -> None:
    console = Console(file=io.StringIO())
    Shown(console, lambda: 1_700_000_000_000).difference("handbook: K = 2: 1 of 2 rows in common")
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert shown == "  22:13:20  handbook: K = 2: 1 of 2 rows in common\n"


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_what_a_store_answers_is_said(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    transport = httpx.MockTransport(lambda _request: httpx.Response(status))
    monkeypatch.setattr(http, "_BoundedTransport", lambda *_: transport)
    with pytest.raises(UnavailableError, match=f"the store answers {status}") as caught:
        chroma_collections("http://store")
    assert ("--token-file" in str(caught.value)) == (status in (401, 403))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--chroma", "nowhere"], "URL"),
        (["--chroma", "http://127.0.0.1:1", "--column", "year"], "--column"),
        (["--chroma", "http://127.0.0.1:1"], "http://127.0.0.1:1: connection refused"),
        (["--chroma", "http://nowhere.invalid:1"], "http://nowhere.invalid:1: "),
    ],
)
def test_the_command_names_what_is_wrong(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code in {2, 3} and message in json.loads(done.stdout)["detail"]
