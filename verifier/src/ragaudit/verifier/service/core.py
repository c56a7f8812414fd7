"""The service put together: what every request handler works with."""

from dataclasses import dataclass

from ragaudit.verifier import keys as key_files
from ragaudit.verifier.keys import VerifierKeys
from ragaudit.verifier.service.auditor import Auditor
from ragaudit.verifier.service.database import Clock, Database
from ragaudit.verifier.service.registration import Registrar
from ragaudit.verifier.settings import Settings


@dataclass(frozen=True)
class Service:
    """Settings, secrets, database and the parts that hold state of their own."""

    settings: Settings
    keys: VerifierKeys
    database: Database
    registrar: Registrar

    @classmethod
    def open(cls, settings: Settings, clock: Clock, auditor: Auditor) -> "Service":
        """Load the secrets and open the database.

        Raises:
            MalformedError, RefusedError: `keys.load`.
            InternalError: the database is of another version.
        """
        keys = key_files.load(settings.secrets, settings.name)
        settings.data.mkdir(parents=True, exist_ok=True)
        database = Database(settings.database_url, clock)
        return cls(settings, keys, database, Registrar(database, keys, auditor))

    def close(self) -> None:
        """Close the database."""
        self.database.close()
