"""``ragaudit verifier migrate``: the database of an earlier release, for this one."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager

import typer
from ragaudit.encoding.commands import failing
from ragaudit.serving.jobs.opening import make_queue
from ragaudit.verifier import settings as settings_files
from ragaudit.verifier.command.options import DEFAULT_SETTINGS, AsJson, SettingsPath
from ragaudit.verifier.service.database import migrate_tables
from ragaudit.verifier.settings import Settings
from ragaudit.verifier.work import JOBS

EXAMPLE = "Example: ragaudit verifier migrate --settings verifier.yaml"


def migrate(settings: SettingsPath = DEFAULT_SETTINGS, as_json: AsJson = False) -> None:
    """Bring the database of an earlier release to this one, or make its tables if it has none.

    Stop the service and back the database up first: there is no way back but the backup. Nothing
    is done by halves; a database of this release stays as it is. The queue of jobs, if the settings
    ask for one, is made anew.
    """
    with failing():
        loaded = settings_files.load(settings)
        settings_files.make_data_folder(loaded)
        with _not_served(loaded):
            done = migrate_tables(loaded.database_url)
            make_queue(loaded.jobs, JOBS, loaded.database_url)
        before = done.before or "no tables"
        if as_json:
            typer.echo(json.dumps({"before": before, "after": done.after}))
        else:
            typer.echo(f"before: {before}\nafter: {done.after}")


@contextmanager
def _not_served(settings: Settings) -> Iterator[None]:
    """Hold the fence of the service meanwhile, so that it neither runs nor starts."""
    # Never made here: a database that a fence has guarded is refused where the file is missing.
    if not settings.fence_path.exists():
        yield
        return
    with closing(settings.fence_place.open()):
        yield
