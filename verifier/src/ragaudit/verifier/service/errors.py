"""What the verifier's service refuses, where it says more than the families of encoding.errors.

    RagauditError
    ├── RefusedError
    │   ├── Conflict    Ambiguous, TooLate
    │   └── TooMany     CapReached
    └── RejectedError   RefusedWindow

Under which status an error is answered is said once, in `ragaudit.serving.problems`.
"""

from collections.abc import Mapping

from ragaudit.encoding.errors import Conflict, RejectedError, TooMany


class Ambiguous(Conflict):
    """A window's name that several providers use, without the provider."""


class TooLate(Conflict):
    """The instant until which this was possible has passed."""


class CapReached(TooMany):
    """A cap on what one window or provider may hold: waiting does not help."""


class RefusedWindow(RejectedError):
    """Checks 1 to 4 failed; the problem document carries the signed verdict.

    Args:
        verdict: the DSSE envelope of the REFUSED verdict (docs/spec/10-verdict.md §10.3), as JSON.
    """

    def __init__(self, what: str, verdict: Mapping[str, object]) -> None:
        super().__init__(what, expected="the checks of docs/spec/09-audit.md")
        self.verdict = verdict

    @property
    def extension(self) -> Mapping[str, object]:
        """The signed verdict."""
        return {"verdict": self.verdict}
