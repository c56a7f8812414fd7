"""Settings of the database and of the fences."""

from pathlib import Path

from pydantic import Field, model_validator
from ragaudit.ledger.log.database import WAIT_SECONDS
from ragaudit.serving.settings import Section, beside, read_secret_file


class StoreSettings(Section):
    """The database, and the folder of the fences, which should be another disk.

    Attributes:
        url: of SQLAlchemy.
        url_file: a secret file with the URL instead, for one that holds a password.
        wait_seconds: how long a service or worker that starts waits for a server to answer.
        retention_days: after a finished window's end all but its public part is deleted; None: it
            is kept.
    """

    url: str = "sqlite:///prover.db"
    url_file: Path | None = None
    wait_seconds: int = Field(default=WAIT_SECONDS, ge=0, le=3600)
    fence_folder: Path = Path("fences")
    free_bytes_min: int = Field(default=64 * 2**20, ge=0, le=2**50)
    retention_days: int | None = Field(default=None, ge=1, le=36_500)

    @model_validator(mode="after")
    def _one_url(self) -> "StoreSettings":
        if self.url_file is not None and "url" in self.model_fields_set:
            raise ValueError("url and url_file are both given; expected one of them")
        return self

    def beside(self, folder: Path) -> "StoreSettings":
        """Return the section with absolute paths, and with the URL of its file.

        Args:
            folder: of the settings.
        """
        store = beside(folder, self, "fence_folder", "url_file")
        given = store.url if store.url_file is None else read_secret_file(store.url_file)
        return store.model_copy(update={"url": _absolute_url(given, folder)})


def _absolute_url(url: str, folder: Path) -> str:
    prefix = "sqlite:///"
    file = url.removeprefix(prefix)
    # Otherwise the database would depend on the folder in which the service is started.
    if file != url and file not in {"", ":memory:"} and not file.startswith("/"):
        return prefix + str(folder / file)
    return url
