"""Names of providers, windows, tenants and accounts (docs/spec/05-records.md §5.1)."""

import hashlib
import hmac
import re
from functools import lru_cache

from ragaudit.encoding.tagged import enc
from ragaudit.ledger.errors import MalformedRecord

PSEUDONYM_BYTES = 32
MAX_DOCUMENT_ID_BYTES = 512

# Neither name has a slash, so `<provider>/ragaudit/<window>` can be read in one way only.
_PROVIDER = re.compile(r"[a-z0-9]([a-z0-9.-]{0,62}[a-z0-9])?", re.ASCII)
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?", re.ASCII)


def check_provider(name: str) -> str:
    """Return a provider's name, checked.

    Raises:
        MalformedRecord: not 1..64 of a-z, 0-9, dot and hyphen.
    """
    return _checked(_PROVIDER, name, "provider")


def check_window(name: str) -> str:
    """Return a window's name, checked.

    Raises:
        MalformedRecord: not 1..64 of a-z, 0-9 and hyphen.
    """
    return _checked(_NAME, name, "window")


def check_tenant(name: str) -> str:
    """Return a tenant's name, checked as a window's; MalformedRecord."""
    return _checked(_NAME, name, "tenant")


def check_document_id(name: str) -> str:
    """Return a document's id, checked.

    Raises:
        MalformedRecord: not 1..512 bytes of UTF-8.
    """
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        # Lone surrogates have no UTF-8, so no digest could name them.
        length = 0
    if not 1 <= length <= MAX_DOCUMENT_ID_BYTES:
        raise MalformedRecord("not a document id", expected=f"1..{MAX_DOCUMENT_ID_BYTES} bytes")
    return name


def log_origin(provider: str, window: str) -> str:
    """Return the origin of the window's log, which is also the name of its key.

    Args:
        provider, window: names, of the grammar of 5.1.

    Raises:
        MalformedRecord: a name that is none.
    """
    return f"{check_provider(provider)}/ragaudit/{check_window(window)}"


def read_origin(origin: str) -> tuple[str, str]:
    """Return provider and window of a log's origin, the inverse of `log_origin`.

    Args:
        origin: of a checkpoint or a message, as an untrusted party sent it.

    Raises:
        MalformedRecord: not such an origin.
    """
    provider, _, window = origin.rpartition("/ragaudit/")
    return check_provider(provider), check_window(window)


def pseudonym(key: bytes, window: str, account: str, user: str | None = None) -> bytes:
    """Return the account's pseudonym in one window, 32 bytes (docs/spec/05-records.md §5.1).

    Args:
        key: the window's secret. With it alone can two windows' pseudonyms be linked.
        window: its name.
        account: its name at the provider.
        user: whose name the account gave; None for the account itself.
    """
    # Keyed: whoever has a list of account names cannot hash them all and compare with the log.
    names = (account,) if user is None else (account, user)
    message = enc("ragaudit/v1/pseudonym", check_window(window), *names)
    return hmac.digest(key, message, hashlib.sha256)


@lru_cache(1024)  # the same few names stand in every record of a log
def _checked(pattern: re.Pattern[str], name: str, what: str) -> str:
    # fullmatch, because `$` lets a final newline through, and names are lines of signed notes.
    if pattern.fullmatch(name) is None:
        raise MalformedRecord(f"not a {what} name", expected=pattern.pattern)
    return name
