"""What people write into settings, options and the environment: URLs and names of variables."""

import os
from collections.abc import Iterable
from urllib.parse import urlsplit

from ragaudit.encoding.errors import MalformedError

__all__ = ["check_environment", "service_url"]


def service_url(text: str, where: str = "URL") -> str:
    """Return the URL of a service without a slash at its end.

    Args:
        text: ``http://`` or ``https://`` with a host and an optional port and path.
        where: the argument's name, for the error.

    Raises:
        MalformedError: not ``http://`` or ``https://`` with a host and an optional port and path; a
            user name, password, query or fragment.
    """
    expected = "http://host:port or https://host"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise MalformedError("not a URL", where=where, expected=expected) from None
    # Such characters could end a request line, or a line of a log.
    strange = any(character.isspace() or not character.isprintable() for character in text)
    if strange or parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise MalformedError("not the URL of a service", where=where, expected=expected)
    # A password in a URL would be in every error and log line that names the service.
    if parts.username is not None or parts.query or parts.fragment:
        raise MalformedError(
            "a URL of a service has no password, query or fragment", where=where, expected=expected
        )
    return text.rstrip("/")


def check_environment(service: str, members: Iterable[str], *, beside: Iterable[str] = ()) -> None:
    """Check that no variable looks like a setting of a service and names none.

    ``RAGAUDIT_PROVER__SERVER__PORT`` overrides ``server.port``; names below the first member are
    checked by the settings themselves.

    Args:
        service: ``PROVER`` or ``VERIFIER``.
        members: names of the outermost settings.
        beside: whole names of variables with another meaning.

    Raises:
        MalformedError: a variable begins with ``RAGAUDIT_<service>_`` and is not a setting.
    """
    prefix = f"RAGAUDIT_{service}"
    settings = {f"{prefix}__{name}".upper() for name in members}
    for name in sorted(os.environ):
        variable = name.upper()
        if not variable.startswith(f"{prefix}_") or variable in beside:
            continue
        member = "__".join(variable.split("__")[:2])
        # Otherwise a variable that is misspelt would leave the default in force, unnoticed.
        if member not in settings:
            raise MalformedError(
                "no such setting", where=name, expected=f"{prefix}__SECTION__MEMBER"
            )
