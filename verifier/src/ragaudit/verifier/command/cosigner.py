"""`ragaudit cosigner`: a witness: cosigns append-only checkpoints."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from ragaudit.encoding.commands import failing, loading
from ragaudit.encoding.errors import MalformedError, RefusedError

if TYPE_CHECKING:
    from ragaudit.verifier.cosigner.settings import Settings
    from ragaudit.verifier.cosigner.store import Store

__all__ = ["app"]

SETTINGS_VARIABLE = "RAGAUDIT_COSIGNER_SETTINGS"
SETTINGS_FILE = "cosigner.yaml"

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="A witness (C2SP): cosigns append-only checkpoints of the logs it was told of.",
)
log = typer.Typer(no_args_is_help=True, help="The logs that are cosigned.")
app.add_typer(log, name="log")

SettingsPath = Annotated[
    Path,
    typer.Option("--settings", "-s", envvar=SETTINGS_VARIABLE, help="Settings file."),
]
DEFAULT = Path(SETTINGS_FILE)


@app.command(epilog="Example: ragaudit cosigner init --name cosigner.example/one")
def init(
    name: Annotated[str, typer.Option(help="Name of the keys: a schema-less URL.")],
    directory: Annotated[Path, typer.Option(help="Folder to set up.")] = Path(),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on the loopback.")] = 8744,
    ml_dsa: Annotated[
        bool, typer.Option("--ml-dsa", help="Cosign with the ML-DSA-44 key as well.")
    ] = False,
) -> None:
    """Write settings and fresh keys; nothing that exists is overwritten."""
    from ragaudit.verifier import settings as verifier_settings
    from ragaudit.verifier.cosigner import settings as settings_files

    with failing():
        path = directory / SETTINGS_FILE
        if path.exists():
            raise RefusedError("settings exist", where=str(path), expected="a fresh folder")
        settings_files.create_keys(directory / "secrets", name)
        algorithms = [settings_files.ED25519] + [settings_files.ML_DSA_44] * ml_dsa
        verifier_settings.write_document(
            path,
            {
                "name": name,
                "data": "data",
                "secrets": "secrets",
                "algorithms": algorithms,
                "listen": {"port": port},
            },
        )
        typer.echo(f"settings: {path}")
        _show_keys(settings_files.load(path))


@app.command(epilog="Example: ragaudit cosigner keys")
def keys(settings: SettingsPath = DEFAULT) -> None:
    """Print the public keys, as a trust policy names them."""
    from ragaudit.verifier.cosigner import settings as settings_files

    with failing():
        _show_keys(settings_files.load(settings))


@app.command(epilog="Example: ragaudit cosigner serve --settings cosigner.yaml")
def serve(settings: SettingsPath = DEFAULT) -> None:
    """Cosign over HTTP until told to stop (SIGINT or SIGTERM)."""
    with loading():
        from ragaudit.serving import server
        from ragaudit.verifier.cosigner import settings as settings_files
        from ragaudit.verifier.cosigner.app import create_app

    with failing():
        loaded = settings_files.load(settings)
        server.run(
            lambda: create_app(loaded),
            host=loaded.listen.host,
            port=loaded.listen.port,
            certificate=loaded.listen.tls_certificate,
            key=loaded.listen.tls_key,
            operation=loaded.operation,
            trusted_proxies=loaded.listen.trusted_proxies,
        )


@app.command("settings-schema", epilog="Example: ragaudit cosigner settings-schema")
def settings_schema() -> None:
    """Print the JSON schema of the settings file."""
    from ragaudit.verifier.cosigner.settings import Settings

    typer.echo(Settings.schema_text())


@log.command("add", epilog="Example: ragaudit cosigner log add 'rag.example/ragaudit/w1+5cb1...'")
def log_add(
    vkey: Annotated[str, typer.Argument(help="The log's vkey; its name is the origin.")],
    settings: SettingsPath = DEFAULT,
) -> None:
    """Take up a log, also while the service runs. A log that was taken up stays."""
    from ragaudit.ledger.log.notes import ED25519, VerifierKey

    with failing(), _store(settings) as store:
        key = VerifierKey.parse(vkey)
        if key.algorithm != ED25519:
            raise MalformedError("not a log's key", expected="a vkey of type 0x01")
        new = store.add(key)
        typer.echo(f"{'cosigned from now on' if new else 'known already'}: {key.name}")


@log.command("list", epilog="Example: ragaudit cosigner log list --json")
def log_list(
    settings: SettingsPath = DEFAULT,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the logs, with the size that was cosigned last."""
    with failing(), _store(settings) as store:
        logs = store.logs()
        if as_json:
            rows = [
                {"origin": each.origin, "key": each.verifier_key, "size": each.size}
                for each in logs
            ]
            typer.echo(json.dumps(rows))
            return
        for each in logs:
            typer.echo(f"{each.size:>12} {each.origin}")


@contextmanager
def _store(path: Path) -> "Iterator[Store]":
    from ragaudit.serving.clock import system_clock
    from ragaudit.verifier.cosigner import settings as settings_files
    from ragaudit.verifier.cosigner.store import Store
    from ragaudit.verifier.settings import make_data_folder

    settings = settings_files.load(path)
    make_data_folder(settings)
    # Without the fence: the running service holds it, and these commands cosign nothing.
    store = Store(settings.database_url, system_clock)
    try:
        yield store
    finally:
        store.close()


def _show_keys(settings: "Settings") -> None:
    from ragaudit.verifier.cosigner import settings as settings_files

    for key in settings_files.load_keys(settings):
        typer.echo(str(key.verifier_key))
