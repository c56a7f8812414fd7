"""Programs of others, built from the Go module proxy, and a log of ours that is published as files.

Where a toolchain or the proxy is missing the tests are skipped, and say what is missing.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from ledger_logs import COSIGNER, COSIGNERS, KEY, fill
from published_log import NEW_SIZE, OLD_SIZE, Published, publish
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.database import open_engine
from ragaudit.ledger.log.store import LogStore

SOURCES = Path(__file__).parent / "go"
FSCK = "github.com/transparency-dev/tessera/cmd/fsck"
BUILD_SECONDS = 900
# What go says where a module cannot be fetched, or where it is too old itself.
MISSING = ("dial tcp", "connection refused", "module lookup disabled", "go.mod requires go >=")


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with `cosigner`, `log`, `proof` and `fsck`; their versions are those of go.sum."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go is not installed: programs of others cannot be built")
    folder = tmp_path_factory.mktemp("programs")
    done = subprocess.run(
        [go, "build", "-mod=readonly", "-o", f"{folder}/", "./cosigner", "./log", "./proof", FSCK],
        cwd=SOURCES,
        env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false", "GOWORK": "off"},
        capture_output=True,
        text=True,
        check=False,
        timeout=BUILD_SECONDS,
    )
    if done.returncode != 0 and any(words in done.stderr for words in MISSING):
        pytest.skip(f"programs of others cannot be built: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def openssl() -> str:
    """The program, of a version that knows Ed25519."""
    found = shutil.which("openssl")
    if found is None:
        pytest.skip("openssl is not installed")
    return found


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    """A stored log of 70,000 entries, signed and cosigned twice, as files."""
    work = tmp_path_factory.mktemp("log")
    engine = open_engine(f"sqlite:///{work}/ledger.db")
    store = LogStore.create(engine, KEY.verifier_key)
    checkpoints = CheckpointStore(store, COSIGNERS)
    fill(store, OLD_SIZE)
    old = checkpoints.sign(KEY)
    fill(store, NEW_SIZE - OLD_SIZE)
    new = checkpoints.sign(KEY)
    line = cosign(new.checkpoint.text, COSIGNER, 1_790_000_000)
    checkpoints.add_cosignatures(NEW_SIZE, [line])
    publish(work / "files", NEW_SIZE, checkpoints.resource)
    yield Published(work / "files", str(KEY.verifier_key), old.head, store, checkpoints)
    engine.dispose()
