"""Settings of the verifier that may hold a password: each can name a secret file instead."""

from pathlib import Path

import pytest
from ragaudit.encoding.errors import MalformedSettings
from ragaudit.verifier import settings


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secrets").mkdir()
    settings.write(
        tmp_path / "verifier.yaml",
        {"name": "regulator.example/cosigner", "data": "data", "secrets": "secrets"},
    )
    return tmp_path


def test_the_database_may_be_named_in_a_secret_file(folder: Path) -> None:
    path, secret = folder / "verifier.yaml", folder / "secrets/database.url"
    plain = path.read_text()
    path.write_text(plain + "database_file: secrets/database.url\n")
    with pytest.raises(MalformedSettings, match="cannot read a secret file"):
        settings.load(path)
    secret.write_text("sqlite:////other/verifier.db\n")
    secret.chmod(0o644)
    with pytest.raises(MalformedSettings, match="others may read"):
        settings.load(path)
    secret.chmod(0o600)
    assert settings.load(path).database_url == "sqlite:////other/verifier.db"
    path.write_text(plain + "database: sqlite:///a.db\ndatabase_file: secrets/database.url\n")
    with pytest.raises(MalformedSettings, match="both given"):
        settings.load(path)


@pytest.mark.parametrize(
    "url", ["https://me:s3cret@models.example/v1", "ftp://models.example", "https://a b.example"]
)
def test_the_embedding_service_is_named_without_a_password(folder: Path, url: str) -> None:
    path = folder / "verifier.yaml"
    endpoint = f"embedder: {{endpoint: {{url: '{url}', models: [m]}}}}\n"
    path.write_text(path.read_text() + endpoint)
    with pytest.raises(MalformedSettings, match="URL") as refused:
        settings.load(path)
    assert "s3cret" not in str(refused.value)
