"""URLs of services, as people write them into settings and options."""

from urllib.parse import urlsplit

from ragaudit.encoding.errors import MalformedError

__all__ = ["service_url"]


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
    strange = any(character.isspace() or not character.isprintable() for character in text)
    if strange or parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise MalformedError("not the URL of a service", where=where, expected=expected)
    if parts.username is not None or parts.query or parts.fragment:
        raise MalformedError(
            "a URL of a service has no password, query or fragment", where=where, expected=expected
        )
    return text.rstrip("/")
