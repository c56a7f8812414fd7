"""Settings, key files, randomness."""

import re
import stat
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from fake_chroma import FakeChroma
from pydantic import ValidationError
from ragaudit.cli.up.run import _window
from ragaudit.cli.up.store import Collection, Found
from ragaudit.embedders import registry
from ragaudit.embedders.base import NONE
from ragaudit.encoding.errors import MalformedError, MalformedSettings
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.log.notes import COSIGNATURE_V1, SigningKey
from ragaudit.ledger.messages.manifests import USUAL_TOLERANCE
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.shown import ShownKeys
from ragaudit.privacy.accounting.generation import channel_loss
from ragaudit.prover.backend_settings import (
    BackendSettings,
    ChannelSettings,
    ChromaSettings,
    EmbedderSettings,
    absolute_backend,
    absolute_embedder,
)
from ragaudit.prover.backends.chroma import ChromaStore
from ragaudit.prover.backends.opening import check_dimensions, open_embedder
from ragaudit.prover.errors import MalformedDocument
from ragaudit.prover.keys import (
    create_key,
    load_key,
    read_secret_file,
    token_digest,
    write_secret_file,
)
from ragaudit.prover.lifecycle.policy_builder import PolicyBuilder
from ragaudit.prover.randomness import OsRandomness, SeededRandomness, randomness_for
from ragaudit.prover.settings import WindowSettings, load_settings, window_settings
from ragaudit.verifier.terms import DEFAULT


def write(folder: Path, text: str) -> Path:
    path = folder / "prover.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults_and_relative_paths(tmp_path: Path) -> None:
    settings = load_settings(write(tmp_path, "provider: example.org\n"))
    assert settings.provider == "example.org"
    assert settings.keys.provider_file == tmp_path / "keys/provider.key"
    assert settings.store.url == f"sqlite:///{tmp_path}/prover.db"
    assert settings.store.fence_folder == tmp_path / "fences"


def test_absolute_paths_and_other_databases_stay(tmp_path: Path) -> None:
    text = "provider: example.org\nstore: {url: 'sqlite:////var/x.db', fence_folder: /var/f}\n"
    store = load_settings(write(tmp_path, text)).store
    assert (store.url, store.fence_folder) == ("sqlite:////var/x.db", Path("/var/f"))


def test_a_url_with_a_password_is_a_secret_file(tmp_path: Path) -> None:
    secret = tmp_path / "database.url"
    secret.write_text("postgresql+psycopg://ragaudit:secret@127.0.0.1/ragaudit\n")
    path = write(tmp_path, "provider: a\nstore: {url_file: database.url}\n")
    with pytest.raises(MalformedSettings, match="others may read"):
        load_settings(path)
    secret.chmod(0o600)
    assert (
        load_settings(path).store.url == "postgresql+psycopg://ragaudit:secret@127.0.0.1/ragaudit"
    )
    secret.write_text("sqlite:///own.db\n")
    assert load_settings(path).store.url == f"sqlite:///{tmp_path}/own.db"
    write(tmp_path, "provider: a\nstore: {url_file: database.url, url: 'sqlite:///x.db'}\n")
    with pytest.raises(MalformedSettings, match="expected one of them") as caught:
        load_settings(path)
    assert "store" in caught.value.where


def test_the_environment_overrides_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "provider: example.org\nserver: {port: 1, host: 127.0.0.2}\n")
    monkeypatch.setenv("RAGAUDIT_PROVER__SERVER__PORT", "8123")
    monkeypatch.setenv("RAGAUDIT_PROVER__WINDOW__AUDIT__MODE", "A")
    settings = load_settings(path)
    assert (settings.server.port, settings.server.host) == (8123, "127.0.0.2")
    assert settings.window.audit.mode == "A"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("provider: Example.org\n", "provider"),
        ("{}\n", "provider"),
        ("provider: a\nserver: {port: 70000}\n", "server.port"),
        ("provider: a\nwindow: {sigma: 2.5}\n", "window.sigma"),
        ("provider: a\nwindow: {sigma: '1e3'}\n", "window.sigma"),
        ("provider: a\nwindow: {surprise: 1}\n", "window.surprise"),
        ("provider: a\nsurprise: 1\n", "surprise"),
        ("- a\n", "prover.yaml"),
        ("a: [\n", "prover.yaml"),
    ],
)
def test_bad_settings_are_named(tmp_path: Path, text: str, where: str) -> None:
    with pytest.raises(MalformedSettings) as caught:
        load_settings(write(tmp_path, text))
    assert where in caught.value.where


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("provider: Example.org\n", "1 to 64 of a-z"),
        ("provider: a\nwindow: {sigma: '1e3'}\n", "a decimal in quotes"),
        ("provider: a\nverifier: {verdict_key: zz}\n", "64 digits 0-9a-f"),
        ("provider: a\nverifier: {url: not a url}\n", "http://host:port or https://host"),
        ("provider: a\nverifier: {url: 'https://u:p@host'}\n", "no password"),
        ("provider: a\nverifier: {proxy: 'socks5://host'}\n", "http://host:port"),
        ("provider: a\nsurprise: 1\n", "no such member"),
    ],
)
def test_what_would_be_right_is_said_in_words(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(MalformedSettings) as caught:
        load_settings(write(tmp_path, text))
    assert words in str(caught.value) and "^" not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "RAGAUDIT_PROVER__SERVR__PORT",
        "RAGAUDIT_PROVER__SERVER__PROT",
        "RAGAUDIT_PROVER_SERVER_PORT",
        "ragaudit_prover__surprise",
    ],
)
def test_unknown_variables_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "1")
    with pytest.raises(MalformedError) as caught:
        load_settings(write(tmp_path, "provider: a\n"))
    assert "no such" in caught.value.what


def test_other_variables_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGAUDIT_PROVER_SETTINGS", "x")
    monkeypatch.setenv("RAGAUDIT_PROVERS", "x")
    load_settings(write(tmp_path, "provider: a\n"))
    monkeypatch.setenv("RAGAUDIT_PROVER__SERVER", "not JSON")
    with pytest.raises(MalformedSettings, match="not a value"):
        load_settings(write(tmp_path, "provider: a\n"))


def test_missing_and_undecodable_files(tmp_path: Path) -> None:
    with pytest.raises(MalformedSettings, match="cannot read"):
        load_settings(tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_bytes(b"provider: \xff\n")
    with pytest.raises(MalformedSettings, match="not a YAML document"):
        load_settings(tmp_path / "bad.yaml")


def test_what_is_no_yaml_is_found_by_line_and_column(tmp_path: Path) -> None:
    faults = {
        "provider: a\n\tb: 2\n": "line 2, column 1: found character '\\t'",
        "provider: [a\nserver: 2\n": "line 2, column 7: expected ',' or ']'",
        "provider: *other\n": "line 1, column 11: found undefined alias",
        "provider: a\x01\n": "character 12: special characters",
        "provider: 2001-99-99\n": "month must be in 1",
        "[" * 5000: "nested too deeply",
    }
    for text, said in faults.items():
        with pytest.raises(MalformedSettings) as caught:
            load_settings(write(tmp_path, text))
        shown = str(caught.value)
        assert shown.startswith(f"{tmp_path}/"), text[:20]
        assert f": not a YAML document: {said}" in shown, (text[:20], shown)


def test_integers_are_decimals_and_floats_are_not(tmp_path: Path) -> None:
    assert load_settings(write(tmp_path, "provider: a\nwindow: {sigma: 2}\n")).window.sigma == "2"


def test_window_overrides() -> None:
    base = WindowSettings()
    changed = window_settings(base, {"sigma": "2", "audit": {"mode": "A"}})
    assert (changed.sigma, changed.audit.mode, changed.audit.beta) == ("2", "A", base.audit.beta)
    with pytest.raises(MalformedSettings) as caught:
        window_settings(base, {"nonsense": 1})
    assert "nonsense" in caught.value.where


def test_key_files_are_private_and_come_back(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "log.key"
    key = create_key(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_key(path) == key
    with pytest.raises(MalformedSettings, match="exists"):
        create_key(path)


def test_key_files_of_others_and_wrong_ones(tmp_path: Path) -> None:
    path = tmp_path / "log.key"
    create_key(path)
    path.chmod(0o640)
    with pytest.raises(MalformedSettings, match="others may read"):
        load_key(path)
    secret = "not hexadecimal, and secret"
    write_secret_file(tmp_path / "other.key", secret)
    with pytest.raises(MalformedSettings) as caught:
        load_key(tmp_path / "other.key")
    assert secret not in str(caught.value)
    with pytest.raises(MalformedSettings, match="cannot read"):
        load_key(tmp_path / "none.key")
    (tmp_path / "binary.key").write_bytes(b"\xff" * 64)
    (tmp_path / "binary.key").chmod(0o600)
    with pytest.raises(MalformedSettings, match="not text"):
        load_key(tmp_path / "binary.key")


def test_secret_files_hold_one_line(tmp_path: Path) -> None:
    write_secret_file(tmp_path / "token", "abc")
    assert read_secret_file(tmp_path / "token") == "abc"
    with pytest.raises(StoreUnavailable, match="cannot write"):
        write_secret_file(tmp_path / "token" / "below-a-file", "abc")


def test_token_digests() -> None:
    assert len(token_digest("x")) == 32
    assert token_digest("\udcff") != token_digest("x")  # headers may hold anything


def test_seeded_draws_depend_on_seed_purpose_and_length() -> None:
    one, other = SeededRandomness("a"), SeededRandomness("b")
    assert one.draw(32, "x", 1) == SeededRandomness("a").draw(32, "x", 1)
    assert len({one.draw(32, "x", 1), one.draw(32, "x", 2), other.draw(32, "x", 1)}) == 3


@pytest.mark.parametrize("source", [OsRandomness(), SeededRandomness("a")])
def test_scalars_are_canonical(source: OsRandomness | SeededRandomness) -> None:
    scalars = source.scalars(20, "blinding")
    assert scalars.shape == (20, 32) and scalars.dtype == np.uint8
    order = 2**252 + 27742317777372353535851937790883648493
    values = [int.from_bytes(row.tobytes(), "little") for row in scalars]
    assert all(value < order for value in values) and len(set(values)) == 20


def test_only_a_policy_with_a_seed_is_seeded() -> None:
    assert isinstance(randomness_for(None), OsRandomness)
    assert isinstance(randomness_for("s"), SeededRandomness)
    assert OsRandomness().draw(32, "x") != OsRandomness().draw(32, "x")


class TestProfiles:
    """What applies to a window with noise, and to one without it."""

    @pytest.mark.parametrize(
        ("members", "words"),
        [
            ({"privacy": "none", "sigma": "2"}, "sigma has no meaning"),
            ({"privacy": "none", "epsilon_acc": "10"}, "epsilon_acc has no meaning"),
            ({"privacy": "none", "coalition_max": 10}, "coalition_max has no meaning"),
            ({"privacy": "none", "experiment_seed": "x"}, "experiment_seed has no meaning"),
            ({"privacy": "gaussian", "norm_bound": 4095}, "with noise it is 127"),
            ({"privacy": "none", "metric": "inner-product"}, "largest_norm belongs"),
            ({"privacy": "none", "largest_norm": "2"}, "largest_norm belongs"),
            ({"privacy": "none", "filters": True}, "there are none"),
            ({"privacy": "none", "query_kinds": []}, "at least one"),
            ({"privacy": "none", "query_kinds": ["text", "text"]}, "distinct"),
            ({"privacy": "none", "query_kinds": ["image"]}, "'text' or 'vector'"),
            ({"privacy": "none", "retry_seconds": 3601}, "3600"),
            ({"privacy": "some"}, "'gaussian' or 'none'"),
            ({"privacy": None}, "'gaussian' or 'none'"),
        ],
    )
    def test_what_does_not_apply_is_refused(self, members: dict[str, object], words: str) -> None:
        with pytest.raises(MalformedSettings, match=words):
            window_settings(WindowSettings(), members)

    def test_settings_for_other_windows_are_not_taken_over(self) -> None:
        noised = WindowSettings(sigma="40", epsilon_acc=None, slots=3)
        exact = window_settings(noised, {"privacy": "none"})
        assert (exact.sigma, exact.slots, exact.bound) == (None, 3, 4095)
        exact = WindowSettings(privacy="none", versions=True, norm_bound=4095)
        private = window_settings(exact, {"privacy": "gaussian", "sigma": "40"})
        assert (private.sigma, private.versions, private.bound) == ("40", True, 127)
        with pytest.raises(MalformedSettings, match="sigma has no meaning"):
            window_settings(noised, {"privacy": "none", "sigma": "40"})


# Settings of the generation channel: what a policy gets of them, and what they refuse.

KEYWORDS: dict[str, Any] = {
    "epsilon_choice": 1,
    "sigma": 2,
    "delta_test": "1/1000000",
    "delta_conversion": "1/1000000",
    "sizes": [2, 1, 2],
    "stop_words": ["the", "a"],
}
OF_KEYWORDS: dict[str, Any] = {
    "mechanism": "murag", "threshold": 0, "epsilon": None, "epsilon_token": None,
    "keywords": KEYWORDS,
}  # fmt: skip
BINS = {"edges": [3, 1], "epsilon": 1, "enough": 3}


def settings(**changes: Any) -> ChannelSettings:
    given = {"epsilon": "5", "epsilon_token": "2", "voters": 4, "uses": 2, "differing_votes": 0}
    return ChannelSettings(**{**given, "mechanism": "murag-ada", **changes})


def test_bins_stand_where_a_policy_has_its_threshold() -> None:
    assert settings(bins=BINS).member({})["threshold"] == {**BINS, "epsilon": "1"}
    assert settings(mechanism="murag", threshold=7).member({})["threshold"] == 7


def test_keywords_stand_in_the_place_of_votes_on_tokens() -> None:
    member = settings(**OF_KEYWORDS).member({})
    assert member["answerer"] == {
        "kind": "dp-ksa",
        **KEYWORDS,
        "epsilon_choice": "1",
        "sigma": "2",
        "sizes": [1, 2],
        "stop_words": ["a", "the"],
        "final": "model",
        "voters": 4,
        "tokens": 64,
    }
    # As small as it may be, where none is asked for.
    least = channel_loss(Fraction(1), Fraction(2), 2, Fraction(1, 10**6))
    assert member["epsilon"] == str(least)
    assert settings(**{**OF_KEYWORDS, "epsilon": "99"}).member({})["epsilon"] == "99"
    too_small = settings(**{**OF_KEYWORDS, "epsilon": "1"})
    with pytest.raises(MalformedSettings, match=f"2 uses cost.*at least {least}"):
        too_small.member({})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"keywords": KEYWORDS}, "epsilon_token or keywords; expected one of them"),
        ({"epsilon_token": None}, "epsilon_token or keywords; expected one of them"),
        ({"epsilon": None}, "no epsilon; expected that of a question"),
        ({**OF_KEYWORDS, "agreement": "2"}, "agreement beside keywords"),
        ({**OF_KEYWORDS, "slots_per_voter": 1}, "slots_per_voter beside keywords"),
        ({**OF_KEYWORDS, "keywords": {**KEYWORDS, "sizes": []}}, "at least 1 item"),
        ({**OF_KEYWORDS, "keywords": {**KEYWORDS, "final": "both"}}, "keywords.final"),
        ({**OF_KEYWORDS, "keywords": {**KEYWORDS, "sigma": 0.5}}, "keywords.sigma"),
        ({"bins": BINS, "threshold": 3}, "threshold and bins; expected one of them"),
        ({"bins": {**BINS, "edges": []}}, "at least 1 item"),
        ({"bins": {**BINS, "epsilon": 0.5}}, "bins.epsilon"),
        ({"bins": {**BINS, "enough": -1}}, "bins.enough"),
    ],
)
def test_settings_that_say_nothing_or_two_things_are_refused(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        settings(**changes)


# Settings of backends and embedders: what means nothing, or isolates nobody, is refused.


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"kind": "pgvector"}, "section pgvector is missing"),
        ({"pgvector": {"dsn_file": "x", "tables": {"a": {"table": "t"}}}},
         "section pgvector is given, and the kind is store"),
        ({"kind": "pgvector", "pgvector": {"dsn_file": "x", "tables": {}}}, "at least 1"),
        ({"kind": "pgvector", "pgvector": {"dsn_file": "x", "tables": {
            "a": {"table": "t"}, "b": {"table": "t"}}}}, "two tenants share rows"),
        ({"kind": "pgvector", "pgvector": {"dsn_file": "x", "tables": {
            "a": {"table": "t", "tenant_column": "c", "tenant_value": "1"},
            "b": {"table": "t", "tenant_column": "c", "tenant_value": "1"}}}}, "share rows"),
        ({"kind": "pgvector", "pgvector": {"dsn_file": "x", "tables": {
            "a": {"table": "t", "tenant_column": "c", "tenant_value": "1"},
            "b": {"table": "t", "tenant_column": "d", "tenant_value": "2"}}}}, "share rows"),
        ({"kind": "pgvector", "pgvector": {"dsn_file": "x", "tables": {
            "a": {"table": "t", "tenant_column": "c"}}}}, "a tenant column without its value"),
        ({"kind": "chroma", "chroma": {"url": "http://h", "collections": {"a": "doc", "b": "doc"}}},
         "two tenants have one collection"),
        ({"kind": "chroma", "chroma": {"url": "http://h?q=1", "collections": {"a": "doc"}}},
         "no password, query or fragment"),
        ({"kind": "chroma", "chroma": {"url": "http://h", "collections": {"a": "../x"}}},
         "pattern"),
        ({"kind": "pgvector", "pgvector": {"dsn_file": "x", "tables": {"a": {"table": "%s"}}}},
         "pattern"),
        ({"kind": "faiss"}, "'store', 'chroma' or 'pgvector'"),
    ],
)  # fmt: skip
def test_settings_that_mean_nothing_or_isolate_nobody(document: Any, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        BackendSettings.model_validate(document)


def test_files_are_beside_the_settings() -> None:
    chroma = {"url": "http://h", "collections": {"a": "doc"}, "token_file": "t", "ca_file": "/c"}
    settings = BackendSettings.model_validate({"kind": "chroma", "chroma": chroma})
    found = absolute_backend(Path("/etc/ragaudit"), settings).chroma
    assert found is not None
    assert (found.token_file, found.ca_file) == (Path("/etc/ragaudit/t"), Path("/c"))
    table = {"dsn_file": "dsn", "tables": {"a": {"table": "t"}}}
    settings = BackendSettings.model_validate({"kind": "pgvector", "pgvector": table})
    pgvector = absolute_backend(Path("/etc/ragaudit"), settings).pgvector
    assert pgvector is not None and pgvector.dsn_file == Path("/etc/ragaudit/dsn")


ENDPOINT = {"url": "http://e/v1", "model": "m", "dimension": 2}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"name": "sentence-transformers"}, "folder is missing"),
        ({"name": "openai-compatible"}, "endpoint is missing"),
        ({"folder": "x"}, "folder is given, and the embedder is wordllama"),
        ({"name": "none", "endpoint": ENDPOINT}, "endpoint is given, and the embedder is none"),
        ({"name": "openai-compatible", "endpoint": {**ENDPOINT, "prompt_template": "x"}},
         "pattern"),
        ({"name": "openai-compatible", "endpoint": {**ENDPOINT, "dimension": 4000}}, "3072"),
        ({"name": "openai-compatible", "endpoint": {**ENDPOINT, "key": "s3cret"}}, "extra"),
    ],
)  # fmt: skip
def test_settings_of_another_embedder_are_refused(document: Any, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        EmbedderSettings.model_validate(document)


def store(*vector: float) -> ChromaStore:
    server = FakeChroma({"a": ("x", None, list(vector))} if vector else {})
    settings = ChromaSettings(url="http://chroma.example", collections={"acme": "docs"})
    return ChromaStore(settings, server)


def test_without_an_embedder_the_stores_vectors_say_how_long_a_query_is() -> None:
    backend = store(1.0, 0.0)
    embedder = open_embedder(EmbedderSettings(name=NONE), backend)
    assert embedder.dimension == 2
    check_dimensions(backend, embedder)
    with pytest.raises(MalformedDocument, match="no vectors"):
        _ = open_embedder(EmbedderSettings(name=NONE), store()).dimension


def test_an_endpoint_is_opened_with_the_key_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("s3cret")
    (tmp_path / "key").chmod(0o600)
    settings = EmbedderSettings.model_validate(
        {"name": registry.ENDPOINT, "endpoint": {**ENDPOINT, "key_file": "key"}}
    )
    embedder = open_embedder(absolute_embedder(tmp_path, settings), store(1.0, 0.0))
    assert (embedder.name, embedder.dimension) == (registry.ENDPOINT, 2)
    with pytest.raises(MalformedSettings, match=r"vectors of 2 entries .*3, as the store has"):
        check_dimensions(store(1.0, 0.0, 0.0), embedder)


def test_an_unknown_embedder_is_refused_with_the_known_ones() -> None:
    with pytest.raises(MalformedSettings, match=r"unknown embedder 'bert' .*wordllama"):
        open_embedder(EmbedderSettings(name="bert"), store(1.0))


# Windows that we tell people to open keep the terms that verifiers ship with.

ROOT = Path(__file__).parents[3]
NOW = 1_790_000_000_000


def policy(settings: dict[str, Any], **about: Any) -> Policy:
    """The policy of a window with these settings, of an embedder that is not deterministic."""
    provider, log, verifier, verdict = (PrivateKey.generate().public for _ in range(4))
    cosigner = SigningKey("v.example", COSIGNATURE_V1, PrivateKey.generate()).verifier_key
    shown = ShownKeys(
        arbiter=None, name="v.example", cosigner=cosigner, verifier=verifier, verdict=verdict,
        time=NOW,
    )  # fmt: skip
    return PolicyBuilder("p.example", provider).build(
        window="w", log_key=log, settings=WindowSettings(**settings), tenants=["t"], dimension=8,
        verifier=shown, previous_checkpoint=None, now=NOW,
        **{"tolerance": USUAL_TOLERANCE, **about},
    )  # fmt: skip


def test_defaults_samples_chapters_and_up_keep_the_shipped_terms() -> None:
    samples = sorted((ROOT / "deployment").glob("prover*.yaml"))
    assert len(samples) == 3
    windows: dict[str, dict[str, Any]] = {
        each.name: yaml.safe_load(each.read_text(encoding="utf-8"))["window"] for each in samples
    }
    chapter = (ROOT / "docs" / "sidecar.md").read_text(encoding="utf-8")
    chosen = {name: int(value) for name, value in re.findall(r"--set (\w+)=(\d+)", chapter)}
    assert len(chosen) == 4
    found = Found((Collection("handbook", 60, 8, "cosine", "handbook"),), ())
    windows |= {
        "defaults": {},
        "with noise": {"privacy": "gaussian"},
        "without noise": {"privacy": "none", "epsilon_acc": None},
        "the sidecar's chapter": {"privacy": "none", "epsilon_acc": None, **chosen},
        "up": _window(found, 2),
    }
    for name, settings in windows.items():
        document = policy(settings)
        assert document.embedder_tolerance == USUAL_TOLERANCE, name
        DEFAULT.check(document)


def test_the_tolerance_is_the_embedders_unless_the_settings_say_one() -> None:
    assert policy({}, tolerance=0).embedder_tolerance == 0
    assert policy({"embedder_tolerance": 0}).embedder_tolerance == 0
    assert policy({"embedder_tolerance": 64}).embedder_tolerance == 64
