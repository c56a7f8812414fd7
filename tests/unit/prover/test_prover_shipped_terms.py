"""Windows that we tell people to open keep the terms that verifiers ship with."""

import re
from pathlib import Path
from typing import Any

import yaml
from ragaudit.cli.up.run import _window
from ragaudit.cli.up.store import Collection, Found
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.notes import COSIGNATURE_V1, SigningKey
from ragaudit.ledger.messages.manifests import USUAL_TOLERANCE
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.shown import ShownKeys
from ragaudit.prover.lifecycle.policy_builder import PolicyBuilder
from ragaudit.prover.settings import WindowSettings
from ragaudit.verifier.terms import DEFAULT

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
