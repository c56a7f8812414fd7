"""Whose request waits, by the key that it carries: for queues and limits, and nothing else."""

from contextlib import suppress
from time import monotonic
from typing import NamedTuple

from anyio import to_thread
from ragaudit.encoding.errors import UnavailableError
from ragaudit.prover.keys import token_digest
from ragaudit.prover.store.accounts import Accounts
from ragaudit.prover.store.owners import Owners

REFRESH_SECONDS = 1.0


class Caller(NamedTuple):
    """Whose request waits: no two that are different are equal, whatever their names.

    Attributes:
        kind: ``account``, ``owner``, ``operator`` or ``peer``.
        name: of the account; the tenant of an owner; the network of a peer.
        user: whom the account names; None for the account itself.
    """

    kind: str
    name: str = ""
    user: str | None = None


OPERATOR = Caller("operator")


class CallersKeys:
    """Whose key a token is, from memory: good for queues, not for authentication."""

    def __init__(self, accounts: Accounts, owners: Owners, operator_digest: bytes) -> None:
        self._accounts = accounts
        self._owners = owners
        self._callers: dict[bytes, Caller] = {operator_digest: OPERATOR}
        self._read = -REFRESH_SECONDS

    async def caller(self, token: str) -> Caller | None:
        """Return which account, owner or operator has this token; None if nobody has it.

        A key made less than `REFRESH_SECONDS` ago may not be known yet.

        Args:
            token: as the caller presents it; nothing is granted for it.
        """
        digest = token_digest(token)
        # At most once a second: guessed tokens must not read the whole tables each time.
        if digest not in self._callers and monotonic() - self._read >= REFRESH_SECONDS:
            self._read = monotonic()
            with suppress(UnavailableError):  # whoever asks is told so by what follows
                # Only added to: a key that was rotated away names its owner's queue: no harm.
                self._callers |= await to_thread.run_sync(self._known)
        return self._callers.get(digest)

    def _known(self) -> dict[bytes, Caller]:
        accounts = {
            key: Caller("account", name) for key, name in self._accounts.key_digests().items()
        }
        owners = {
            key: Caller("owner", tenant) for key, tenant in self._owners.key_digests().items()
        }
        return accounts | owners
