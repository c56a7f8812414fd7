"""From other interfaces' JSON to the one kind of query, and nothing in between by accident."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.json_structure import MAX_DEPTH
from ragaudit.ledger.messages.filters import Filter
from ragaudit.prover.errors import NotServed
from ragaudit.prover.settings import SurfaceSettings
from ragaudit.prover.store.accounts import Account, check_user
from ragaudit.prover.surfaces import chroma, dify, openai, qdrant
from ragaudit.prover.surfaces.dialects import read_json, vector_bytes
from ragaudit.prover.surfaces.qdrant import point_id, row_id
from ragaudit.prover.surfaces.queries import Hit
from surface_app import COLUMNS

ROWS: list[dict[str, Any]] = [
    *({"n": n, "s": s} for n, s in itertools.product((1, 2, 3), "xy")),
    {"n": 2},
    {"s": "x"},
    {},
]


def passing(condition: Any) -> list[int]:
    made = Filter.from_json(condition, COLUMNS)
    return [at for at, row in enumerate(ROWS) if made.passes(row)]


def selected(test: Any) -> list[int]:
    return [at for at, row in enumerate(ROWS) if test(row)]


def from_openai(value: dict[str, Any]) -> Any:
    return openai.condition_of(openai.FilterBody.model_validate(value))


def from_qdrant(value: dict[str, Any]) -> Any:
    return qdrant.condition_of(qdrant.FilterBody.model_validate(value), "metadata")


def from_dify(value: dict[str, Any]) -> Any:
    given = dify.MetadataCondition.model_validate(value)
    return dify.condition_of(given, {column.name: column.type for column in COLUMNS})


def test_one_filter_in_four_languages() -> None:
    wanted = selected(lambda row: row.get("n", 0) > 1 and row.get("s") == "x")
    assert wanted
    for condition in (
        from_openai(
            {
                "type": "and",
                "filters": [
                    {"type": "gt", "key": "n", "value": 1},
                    {"type": "eq", "key": "s", "value": "x"},
                ],
            }
        ),
        chroma.condition_of({"$and": [{"n": {"$gt": 1}}, {"s": "x"}]}),
        from_qdrant(
            {
                "must": [
                    {"key": "metadata.n", "range": {"gt": 1}},
                    {"key": "metadata.s", "match": {"value": "x"}},
                ]
            }
        ),
        from_dify(
            {
                "logical_operator": "and",
                "conditions": [
                    {"name": ["n"], "comparison_operator": ">", "value": "1"},
                    {"name": "s", "comparison_operator": "is", "value": "x"},
                ],
            }
        ),
    ):
        assert passing(condition) == wanted


@pytest.mark.parametrize(
    ("name", "test"),
    [
        ("eq", lambda n: n == 2),
        ("ne", lambda n: n != 2),
        ("gt", lambda n: n is not None and n > 2),
        ("gte", lambda n: n is not None and n >= 2),
        ("lt", lambda n: n is not None and n < 2),
        ("lte", lambda n: n is not None and n <= 2),
    ],
)
def test_comparisons_of_openai_and_chroma(name: str, test: Any) -> None:
    wanted = selected(lambda row: test(row.get("n")))
    assert passing(from_openai({"type": name, "key": "n", "value": 2})) == wanted
    assert passing(chroma.condition_of({"n": {f"${name}": 2}})) == wanted


def test_lists_of_values() -> None:
    inside = selected(lambda row: row.get("n") in (1, 3))
    outside = selected(lambda row: row.get("n") not in (1, 3))
    assert passing(from_openai({"type": "in", "key": "n", "value": [1, 3]})) == inside
    assert passing(from_openai({"type": "nin", "key": "n", "value": [1, 3]})) == outside
    assert passing(chroma.condition_of({"n": {"$in": [1, 3]}})) == inside
    assert passing(chroma.condition_of({"n": {"$nin": [1, 3]}})) == outside
    assert passing(from_qdrant({"must": {"key": "metadata.n", "match": {"any": [1, 3]}}})) == inside
    values = {"name": "n", "comparison_operator": "not in", "value": ["1", "3"]}
    assert passing(from_dify({"conditions": [values]})) == outside


def test_qdrants_clauses_as_its_own_engine_reads_them() -> None:
    models = pytest.importorskip("qdrant_client.http.models", reason="qdrant-client is missing")
    local = pytest.importorskip("qdrant_client.local.payload_filters")
    n_is_2 = {"key": "metadata.n", "match": {"value": 2}}
    x = {"key": "metadata.s", "match": {"value": "x"}}
    low = {"key": "metadata.n", "range": {"gte": 1, "lt": 3}}
    for clauses in (
        {"must": [n_is_2], "must_not": [x]},
        {"should": [n_is_2, x]},
        {"must": [low], "should": [x]},
        {"must": [{"should": [n_is_2, x]}, {"must_not": [low]}]},
        {"must_not": [n_is_2, x]},
    ):
        theirs = models.Filter.model_validate(clauses)
        wanted = selected(
            lambda row, theirs=theirs: local.check_filter(theirs, {"metadata": row}, 1, {})
        )
        assert passing(from_qdrant(clauses)) == wanted, clauses


@pytest.mark.parametrize(
    "where",
    [
        {},
        {"n": 1, "s": "x"},
        {"n": {"$gt": 1, "$lt": 3}},
        {"n": {"$regex": "x"}},
        {"$not": [{"n": 1}]},
        {"#document": {"$eq": "x"}},
        {"n": {"$in": 1}},
        {"n": {"$eq": None}},
        {"n": [1]},
        {"$and": {"n": 1}},
        {"$and": []},
        {"$or": ["n"]},
    ],
)
def test_a_where_that_is_none(where: dict[str, Any]) -> None:
    with pytest.raises((MalformedError, UnsupportedError)):
        chroma.condition_of(where)


@pytest.mark.parametrize(
    "given",
    [
        {"must": [{"key": "metadata.s", "match": {"except": ["x"]}}]},
        {"must": [{"key": "metadata.s", "match": {"text": "x"}}]},
        {"must": [{"key": "n", "match": {"value": 1}}]},
        {"must": [{"has_id": [1]}]},
        {"must": [{"is_empty": {"key": "metadata.n"}}]},
        {"must": [{"key": "metadata.n", "is_null": True}]},
        {"must": [{"nested": {"key": "metadata", "filter": {}}}]},
        {"must": [{"key": "metadata.n", "values_count": {"gt": 1}}]},
        {"must": [{"key": "metadata.n", "match": {"value": 1}, "range": {"gt": 1}}]},
        {"must": [{"key": "metadata.n"}]},
        {"must": [{"key": "metadata.n", "range": {}}]},
        {"must": [{}]},
        {"min_should": {"conditions": [], "min_count": 1}},
        {"key": "metadata.n", "match": {"value": 1}},
    ],
)
def test_conditions_of_qdrant_that_are_not_served(given: dict[str, Any]) -> None:
    with pytest.raises((NotServed, MalformedError, UnsupportedError)):
        from_qdrant(given)


def test_an_empty_filter_of_qdrant_is_none() -> None:
    assert from_qdrant({}) is None and from_qdrant({"must": [], "should": []}) is None


@pytest.mark.parametrize(
    "given",
    [
        {"type": "like", "key": "s", "value": "x"},
        {"type": "eq", "key": "s"},
        {"type": "eq", "key": "s", "value": "x", "filters": []},
        {"type": "and", "filters": []},
        {"type": "or", "key": "s", "filters": [{"type": "eq", "key": "s", "value": "x"}]},
        {"type": "in", "key": "s", "value": "x"},
    ],
)
def test_filters_of_openai_that_are_none(given: dict[str, Any]) -> None:
    with pytest.raises((MalformedError, UnsupportedError)):
        from_openai(given)


@pytest.mark.parametrize(
    "given",
    [
        {"name": "s", "comparison_operator": "contains", "value": "x"},
        {"name": "s", "comparison_operator": "empty"},
        {"name": ["s", "n"], "comparison_operator": "is", "value": "x"},
        {"name": "n", "comparison_operator": ">", "value": "many"},
        {"name": "n", "comparison_operator": ">", "value": "nan"},
        {"name": "n", "comparison_operator": ">", "value": "inf"},
        {"name": "n", "comparison_operator": ">"},
        {"name": "s", "comparison_operator": "is"},
    ],
)
def test_conditions_of_dify_that_are_not_served(given: dict[str, Any]) -> None:
    with pytest.raises((MalformedError, UnsupportedError)):
        from_dify({"conditions": [given]})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"a": 1, "a": 1}',
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": "\\ud800"}',
        b"\xff",
        b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
        b"[" * 100_000,
    ],
)
def test_json_with_no_one_meaning(data: bytes) -> None:
    with pytest.raises(MalformedError, match="body"):
        read_json(data)


def test_json_may_have_fractions() -> None:
    assert read_json(b'{"a": [0.5, 1e-3]}') == {"a": [0.5, 0.001]}
    assert read_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)


@pytest.mark.parametrize("values", [[], [1e39], [float("nan")], [0.0, float("inf")]])
def test_vectors_beyond_float32(values: list[float]) -> None:
    with pytest.raises(MalformedError, match="query"):
        vector_bytes(values, "query")


def test_vectors_are_little_endian_float32() -> None:
    assert vector_bytes([1, 0.5], "query").hex() == "0000803f0000003f"


def hit(name: str, score: float | None = None) -> Hit:
    return Hit(name, name, {}, (), score)


def test_pages_of_several_queries_have_the_best_of_all_and_no_row_twice() -> None:
    page = openai.merged([[hit("a", 0.9), hit("b", 0.5)], [hit("c", 0.8), hit("a", 0.1)]])
    assert [(row.id, row.score) for row in page] == [("a", 0.9), ("c", 0.8), ("b", 0.5)]


def test_pages_of_a_private_window_take_from_each_query_in_turn() -> None:
    page = openai.merged([[hit("a"), hit("b")], [hit("c"), hit("a"), hit("d")], []])
    assert [row.id for row in page] == ["a", "c", "b", "d"]


def test_ids_of_points_go_both_ways() -> None:
    for name in ("7", "0", str(2**64 - 1), "07", "-7", str(2**64), "a", "٣", ""):
        assert row_id(point_id(name)) == name
    assert point_id("7") == 7 and point_id("07") == "07" and point_id("٣") == "٣"


NAMES = st.sampled_from(["ada", "ada+bob", "acme+ada", "a", "b"])
USERS = st.one_of(
    st.none(),
    st.text(min_size=1, max_size=60),
    st.sampled_from(["ada", "Ada", "ADA", "ada ", "a\u0308", "\u00e4", "sha256+0", "acme+ada"]),
)


@given(st.tuples(NAMES, USERS), st.tuples(NAMES, USERS))
def test_different_accounts_and_end_users_have_different_rows(
    one: tuple[str, str | None], other: tuple[str, str | None]
) -> None:
    ids = [Account(name, "t", user).id for name, user in (one, other)]
    assert (ids[0] == ids[1]) == (one == other)
    assert all(len(name) <= 127 and name.isascii() for name in ids)


def test_an_end_user_is_a_name_that_can_be_printed() -> None:
    for user in ("ada", "Zoë", "\u00e4", "a b", "x" * 1024, "\u6f22", 'a/b\\c"d', "+", "-"):
        assert check_user(user) == user
    for user in (
        "", "x" * 1025, "\u00e4" * 513, " ada", "ada ", " ", "a\nb", "a\tb", "a\rb", "a\x00",
        "a\x1b[31m", "a\x7f", "a\x85b", "a\u2028b", "a\u202eb", "a\u200bb",
        "a\ud800", "a\u00a0b", "a\ue000",
    ):  # fmt: skip
        with pytest.raises(MalformedError, match="end user"):
            check_user(user)


@pytest.mark.parametrize(
    "settings",
    [
        {"collections": {"hand book": "acme"}},
        {"collections": {"h\u00e4ndbook": "acme"}},
        {"collections": {"ab": "acme"}},
        {"collections": {"handbook": "Acme"}},
        {"enabled": ["pinecone"]},
        {"delegation": {"jwt": {"issuer": "i", "audience": "a"}}},
        {
            "delegation": {
                "jwt": {
                    "issuer": "i",
                    "audience": "a",
                    "jwks_file": "k",
                    "algorithms": ["HS256"],
                }
            }
        },
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        SurfaceSettings.model_validate(settings)
