"""The demo's arbiter: judges disputed receipts of sampled records, and tells the verifier."""

from pathlib import Path
from typing import Any

from ragaudit.encoding.errors import RefusedError
from ragaudit.encoding.options import public_key
from ragaudit.http import HttpClient
from ragaudit.serving.clock import system_clock
from ragaudit.verifier.arbiter import Arbiter, read_window
from ragaudit.verifier.engines import fastest_engine

__all__ = ["arbitrate"]


def arbitrate(
    folder: Path, file: dict[str, Any], *, window: str, verifier_key: str, prover: str,
    verifier: str,
) -> None:  # fmt: skip
    """Take a receipt file to the arbiter in ``folder``, and its finding to the verifier.

    Args:
        folder: of the arbiter, which shares nothing with the verifier.
        file: the receipt file as JSON.
        window: its name.
        verifier_key: public, in hex, known from elsewhere and not from the provider.
        prover, verifier: addresses.

    Raises:
        RefusedError: the verifier does not take the finding.
    """
    with HttpClient(prover, timeout=60) as http:
        shown = http.request("GET", f"/v1/windows/{window}").json()
    view = read_window(shown, public_key(verifier_key))
    finding, public = Arbiter(folder).judge(file, view, fastest_engine(), system_clock)
    told = {"finding": finding.to_json(), "public": public.to_json()}
    with HttpClient(verifier, timeout=60) as http:
        answer = http.request("POST", f"/v1/windows/{window}/findings", json=told)
    if not answer.is_success:
        raise RefusedError(f"finding not taken: {answer.status_code}", where=window)
