"""The prover within a program of your own; here without a verifier, only asked whether it is alive.

Run it with ``python embed_prover.py`` beside a folder that `ragaudit prover init` made.
"""

from pathlib import Path

from fastapi.testclient import TestClient
from ragaudit.prover.http.app import create_app
from ragaudit.prover.settings import load_settings

settings = load_settings(Path("prover/prover.yaml"))
unpinned = settings.verifier.model_copy(update={"allow_unpinned": True})  # no verifier is asked
app = create_app(settings.model_copy(update={"verifier": unpinned}))
with TestClient(app) as client:
    alive = client.get("/healthz").json()
    ready = client.get("/readyz").json()
print(alive["status"], ready["status"])
