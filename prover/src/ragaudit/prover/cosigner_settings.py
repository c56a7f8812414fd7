"""Settings of the further cosigners: third parties, asked beside the window's verifier."""

from pathlib import Path

from pydantic import Field
from ragaudit.encoding.errors import MalformedError, MalformedSettings
from ragaudit.ledger.errors import MalformedTrustPolicy
from ragaudit.ledger.log.tlog_policy import TrustPolicy
from ragaudit.serving.settings import Section, Url

MAX_POLICY_BYTES = 2**18


class CosignerSettings(Section):
    """Who is asked to cosign checkpoints beside the verifier, and how long that may take.

    Attributes:
        policy_file: a tlog-policy file (docs/spec 6.12) with the URLs of those who are asked, and
            the quorum; without it nobody is asked.
        every_seconds: how often they are asked, all for one checkpoint.
        timeout_seconds: for each phase of a call.
        wait_seconds: how long the proof of a receipt waits for the quorum; then it is given
            without.
        ca_file: PEM file of the certificate authorities to trust instead of the usual.
        proxy: URL of the HTTP proxy through which they are reached.
    """

    policy_file: Path | None = None
    every_seconds: float = Field(default=5.0, ge=0.1, le=3600)
    timeout_seconds: float = Field(default=5.0, gt=0, le=60)
    wait_seconds: int = Field(default=15, ge=0, le=3600)
    ca_file: Path | None = None
    proxy: Url | None = None


def read_trust(settings: CosignerSettings) -> TrustPolicy | None:
    """Return the policy of the further cosigners, None if there are none.

    Raises:
        MalformedSettings: no such file, a line that is not of the format, a line of a log, or
            nobody with a URL.
    """
    path = settings.policy_file
    if path is None:
        return None
    where = f"cosigners.policy_file: {path}"
    try:
        with path.open("rb") as file:
            policy = TrustPolicy.parse(file.read(MAX_POLICY_BYTES + 1))
    except OSError as error:
        raise MalformedSettings(f"cannot read: {error.strerror}", where=where) from None
    except MalformedTrustPolicy as error:
        raise MalformedSettings(
            error.what, where=f"{where}, {error.where}", expected=error.expected
        ) from error
    except MalformedError as error:
        raise MalformedSettings(error.what, where=where) from error
    # A window's log has a key of its own, which nobody knows before.
    if policy.logs:
        raise MalformedSettings("a line of a log", where=where, expected="witnesses only")
    if not any(each.url for each in policy.cosigners):
        raise MalformedSettings("nobody to ask", where=where, expected="a witness with a URL")
    return policy
