"""Windows that generate answers, by services that are processes, and what becomes of them."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import httpx
from generation_channel import records
from prover_process import Setting
from ragaudit.lab.generation.serving import MODEL
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.store.database import Store
from verifier_process import VerifierProcess


def processes(
    tmp_path: Path,
    model_url: str,
    environment: dict[str, str],
    arbiter: str | None = None,
    **own: str,
) -> Iterator[Setting]:
    """A prover and a verifier that both have the model; the records are tenant one's.

    Args:
        environment: of the prover's process, beside the usual.
        arbiter: key of the arbiter that the verifier hears, hexadecimal.
        own: settings of the verifier's generator.
    """
    (tmp_path / "verifier").mkdir()
    generator = {"url": model_url, "models": [MODEL], **own}
    verifier = VerifierProcess(
        tmp_path / "verifier", tick_seconds=0.2, generator=generator, arbiter_key=arbiter
    )
    made = Setting(tmp_path, verifier)
    store = Store.open(made.settings.store.url)
    StoredDocuments(store).add("one", records(), replace=True)
    store.close()
    made.prover.environment = {"RAGAUDIT_PROVER__GENERATOR__URL": model_url, **environment}
    if arbiter is not None:
        made.prover.environment["RAGAUDIT_PROVER__VERIFIER__ARBITER_KEY"] = arbiter
    verifier.start()
    try:
        yield made
    finally:
        made.stop()


def verdict(setting: Setting) -> Verdict:
    answer = httpx.get(f"{setting.verifier.url}/v1/windows/w1/verdict", trust_env=False)
    assert answer.status_code == 200, answer.text
    return Verdict.verify(answer.content, setting.verifier.keys.verdict.public)


def bundle(setting: Setting, folder: Path) -> Path:
    """The bundle of all evidence, as the auditor gets it."""
    token = (folder / "verifier" / "secrets" / "auditor-token").read_text().strip()
    answer = httpx.post(
        f"{setting.verifier.url}/v1/windows/w1/bundle/confidential",
        json={"reader": "a test", "reason": "a second run"},
        headers={"Authorization": f"Bearer {token}"},
        timeout=120,
        trust_env=False,
    )
    assert answer.status_code == 200, answer.text
    path = folder / f"bundle {secrets.token_hex(4)}"
    path.write_bytes(answer.content)
    return path


def faults(found: Verdict) -> dict[str, str]:
    return {each.id: str(each.status) for each in found.predicate.checks if each.status != "PASS"}
