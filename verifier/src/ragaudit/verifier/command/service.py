"""Which service a command speaks to: of the settings, or named."""

from pathlib import Path

from ragaudit.verifier import keys as key_files
from ragaudit.verifier import settings as settings_files
from ragaudit.verifier.settings import Settings


def service(path: Path, url: str | None, token_file: Path | None) -> tuple[str, str]:
    """Return address and token of the service, from the settings where they are not given.

    Args:
        path: of the settings; not read where both others are given.
        url: where the service listens.
        token_file: that holds the auditor's token.

    Raises:
        MalformedError: settings or token that cannot be read.
    """
    if url is not None and token_file is not None:
        return url, key_files.read_token(token_file)
    settings = settings_files.load(path)
    token = key_files.read_token(token_file or settings.secrets / key_files.TOKEN)
    return url or _address(settings), token


def _address(settings: Settings) -> str:
    scheme = "http" if settings.listen.tls_certificate is None else "https"
    return f"{scheme}://{settings.listen.host}:{settings.listen.port}"
