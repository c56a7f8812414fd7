"""PostgreSQL with pgvector: what a tenant's own connection can be made to say.

Every request is a list of statements in one transaction that is always rolled back, but for those
that plant canaries.
"""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.lab.attacks.scope.exchange import Answer, Request, Secrets
from ragaudit.lab.attacks.scope.probes import (
    FAILING,
    TAG,
    Attempt,
    Canary,
    Census,
    Oracle,
    Probe,
    Write,
    each,
    question,
)
from ragaudit.lab.attacks.scope.stores.store import Scene, Store

_KEPT = "COMMIT"
_MOST_ROWS = 10_000
_LOST = "08006"
# As notices: `database_to_xml` does the same only where the server was built with libxml.
_SEARCH = (
    "DO $search$ DECLARE name regclass; seen text; BEGIN FOR name IN SELECT oid FROM pg_class "
    "WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND relnamespace NOT IN "
    "('pg_catalog'::regnamespace, 'information_schema'::regnamespace) LOOP BEGIN EXECUTE format("
    "'SELECT string_agg(one::text, chr(10)) FROM %s one WHERE strpos(one::text, %L) > 0', "
    "name, {sought}) INTO seen; RAISE NOTICE '%', seen; "
    "EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $search$"
)


class SqlClient:
    """Runs statements with each tenant's own connection."""

    def __init__(self, secrets: Secrets, timeout: float) -> None:
        """Connect lazily.

        Args:
            timeout: of a statement, in seconds.

        Raises:
            UnsupportedError: the driver is not installed.
        """
        try:
            import psycopg  # noqa: PLC0415 - an extra
        except ImportError:
            raise UnsupportedError(
                "psycopg is not installed", where="store", expected="ragaudit-prover[postgres]"
            ) from None
        self._driver = psycopg
        self._secrets = secrets
        self._timeout = timeout
        self._connections: dict[str, psycopg.Connection[Any]] = {}

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections = {}

    def send(self, request: Request) -> Answer:
        """Return the rows of the statements, or what the server says against one of them."""
        try:
            connection = self._connection(request.by)
        except self._driver.Error as error:
            # Not its text: it may quote the connection string.
            return Answer(error.sqlstate or "", f"no connection: {type(error).__name__}")
        started = time.perf_counter()
        notices: list[str] = []
        connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        try:
            rows: list[Any] = []
            cut = False
            with connection.cursor() as cursor:
                for statement in request.path.split(";\n"):
                    cursor.execute(statement.encode())
                    if cursor.description is not None:
                        rows.append(cursor.fetchmany(_MOST_ROWS))
                        cut |= cursor.fetchone() is not None
            text = json.dumps(rows + notices, default=str, ensure_ascii=False)
            answer = Answer("OK", text, seconds=time.perf_counter() - started, cut=cut)
        except self._driver.Error as error:
            said = error.diag
            parts = (said.message_primary, said.message_detail, said.message_hint, said.context)
            text = " ".join(part for part in parts if part) or str(error)
            answer = Answer(error.sqlstate or _LOST, text, seconds=time.perf_counter() - started)
        self._ended(request.by, connection)
        return answer

    def _connection(self, tenant: str) -> Any:
        if tenant not in self._connections:
            milliseconds = int(self._timeout * 1000)
            made = self._driver.connect(
                self._secrets.of(tenant) or "", connect_timeout=max(int(self._timeout), 2)
            )
            made.execute(f"SET statement_timeout = {milliseconds}".encode())
            made.commit()
            self._connections[tenant] = made
        return self._connections[tenant]

    def _ended(self, tenant: str, connection: Any) -> None:
        try:
            connection.rollback()
        except self._driver.Error:
            connection.close()
        if connection.closed:
            del self._connections[tenant]


class Pgvector(Store):
    """A table of vectors that tenants share, or one for each."""

    header: ClassVar[str] = ""
    prefix: ClassVar[str] = ""
    vectors: ClassVar[bool] = True
    plants: ClassVar[bool] = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._columns = self.target.pgvector

    def control(self, tenant: str) -> Request:
        return self._sql(tenant, self._nearest(tenant))

    def plant(self, tenant: str) -> list[Request]:
        inserts = [self._insert(tenant, canary, metadata) for canary, metadata in self.rows(tenant)]
        return [self._sql(tenant, *inserts, _KEPT)]

    def remove(self, tenant: str) -> list[Request]:
        ids = ", ".join(_text(canary.id) for canary in self.scene.planted(tenant))
        delete = f"DELETE FROM {self._table(tenant)} WHERE {self._id}::text IN ({ids})"
        return [self._sql(tenant, delete, _KEPT)]

    def probes(self, attacker: str, victim: str) -> list[Probe]:
        return [
            *self._reading(attacker, victim),
            *self._roles(attacker, victim),
            *self._catalogue(attacker, victim),
            *self._writing(attacker, victim),
        ]

    def oracles(self, attacker: str, victim: str) -> list[Oracle]:
        table = self._table(victim)
        plain = "ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF"
        canary, metadata = self.rows(attacker)[0] if attacker in self.scene.canaries else (None, {})
        select = f"SELECT count(*) FROM {table} WHERE {self._id}::text = "
        typed = f"SELECT count(*) FROM {table} WHERE {self._id} = "
        oracles = [
            Oracle("existence-by-id", "id", "An id of the other tenant.", "id",
                   lambda value: self._sql(attacker, select + _text(value))),
            Oracle("explain", "statistics", "What a plan says that it left out.", "id",
                   lambda value: self._sql(attacker, f"EXPLAIN ({plain}) {typed}{_text(value)}")),
        ]  # fmt: skip
        if canary is not None:
            oracles.append(Oracle(
                "unique-violation", "error", "A new row with an id that another may have.", "id",
                lambda value: self._sql(attacker, self._insert(attacker, canary, metadata, value)),
            ))  # fmt: skip
        return oracles

    def writes(self, attacker: str, victim: str) -> list[Write]:
        known, metadata = self.rows(victim)[0]
        new, taken = self.forged(victim), self.forged(victim, known)
        table, content = self._table(victim), _name(self._columns.content)
        row = f"WHERE {self._id}::text = {_text(known.id)}"
        read = self._sql(victim, f"SELECT * FROM {table} WHERE {self._id}::text IN "
                                 f"({_text(known.id)}, {_text(new.id)})")  # fmt: skip
        written = f"WHERE {self._id}::text IN ({_text(new.id)}, {_text(known.id)})"
        undo = [
            *(self._sql(tenant, f"DELETE FROM {self._table(tenant)} {written}", _KEPT)
              for tenant in (attacker, victim)),
            *self.remove(victim), *self.plant(victim),
        ]  # fmt: skip
        changes = [f"UPDATE {table} SET {content} = {_text(taken.text)} {row}"]
        if field := self.target.tenant_field:
            own = _text(self.target.value(attacker))
            changes.append(f"UPDATE {table} SET {_name(field)} = {own} {row}")
        insert = self._insert(victim, new, {**metadata, TAG: new.tag})
        conflict = self._insert(victim, taken, {**metadata, TAG: taken.tag})
        update = f"DO UPDATE SET {content} = EXCLUDED.{content}"
        changes.append(f"{conflict} ON CONFLICT ({self._id}) {update}")
        return [
            Write("write-tenant", "A new row that says it is the other tenant's.",
                  self.attempts(read, new, [self._sql(attacker, insert, _KEPT)], undo)),
            Write("write-id", "Another's row, changed or handed over.",
                  self.attempts(read, taken, (self._sql(attacker, one, _KEPT) for one in changes),
                                undo, loses=known.marker)),
            Write("delete", "Another's row, removed.", self.attempts(
                read, known, [self._sql(attacker, f"DELETE FROM {table} {row}", _KEPT)], undo,
                loses=known.marker)),
            self._whole(attacker, victim),
        ]  # fmt: skip

    def censuses(self, attacker: str, victim: str) -> list[Census]:
        row, table = self.forged(victim), self._table(victim)
        inserted = self._insert(victim, row, {TAG: row.tag})
        deleted = f"DELETE FROM {table} WHERE {self._id}::text = {_text(row.id)}"
        return [
            Census("count", "A count that another's row raises.",
                   self._sql(attacker, f"SELECT count(*) FROM {table}"),
                   self._sql(victim, deleted, inserted, _KEPT), self._sql(victim, deleted, _KEPT)),
        ]  # fmt: skip

    def _whole(self, attacker: str, victim: str) -> Write:
        """What takes a whole table away and asks nobody whose rows it has. Always rolled back, and
        given up if it would have to wait for others."""
        table, word = self._table(victim), self.disposable()
        read = self._sql(victim, "SELECT 1")
        # The answer is none that an error could repeat.
        shown = hashlib.md5(word.encode(), usedforsecurity=False).hexdigest()
        requests = (
            self._sql(attacker, "SET LOCAL lock_timeout = '2s'", statement,
                      f"SELECT md5({_text(word)})")
            for statement in (f"TRUNCATE {table}", f"DROP TABLE {table}",
                              f"ALTER TABLE {table} RENAME TO {_name(word)}")
        )  # fmt: skip
        return Write(
            "whole-table", "Another's table, emptied, removed or renamed; rolled back.",
            tuple(Attempt(request, read, "", "", (), proves=shown) for request in requests),
        )  # fmt: skip

    def _reading(self, attacker: str, victim: str) -> Iterator[Probe]:
        table, own = self._table(victim), self.target.value(attacker)
        field = _name(self.target.tenant_field)
        other = _text(self.target.value(victim))
        ids = ", ".join(_text(canary.id) for canary in self.scene.planted(victim))
        filters = [
            f"{field} = {other}", f"{field} <> {_text(own)}", f"{field} = {_text(own)} OR true",
            f"{field} IS NOT NULL", f"{field}::text LIKE '%'", f"{field}::text ~ '.*'",
            f"NOT ({field} = {_text(own)})", f"{field} IN ({_text(own)}, {other})",
        ]  # fmt: skip
        yield Probe("select-all", "enumeration", "All rows, without a condition.", each([
            self._sql(attacker, f"SELECT * FROM {table}"), self._sql(attacker, f"TABLE {table}"),
            self._sql(attacker, f"SELECT * FROM ONLY {table}"),
            self._sql(attacker, f"SELECT * FROM {table} TABLESAMPLE SYSTEM (100)"),
            self._sql(attacker, f"SELECT to_jsonb(r) FROM {table} r"),
            self._sql(attacker, f"SELECT query_to_xml({_text(f'SELECT * FROM {table}')}, "
                                "true, false, '')::text"),
        ]))  # fmt: skip
        yield Probe("filter", "filter", "Conditions that hold for the rows of others.", each(
            self._sql(attacker, f"SELECT * FROM {table} WHERE {one}") for one in filters
        ))  # fmt: skip
        injected = f"{own}' OR '1'='1"
        yield Probe("filter-sql", "filter", "SQL within a value that is not quoted twice.", each([
            self._sql(attacker, f"SELECT * FROM {table} WHERE {field} = '{injected}'"),
            self._sql(attacker, f"SELECT * FROM {table} WHERE {field} = '{own}' "
                                f"UNION ALL SELECT * FROM {table}"),
        ]))  # fmt: skip
        yield Probe("nearest", "filter", "A question near another's rows.",
                    each([self._sql(attacker, self._nearest(victim))]))  # fmt: skip
        yield Probe("get-ids", "id", "Ids of another tenant's rows.", each([
            self._sql(attacker, f"SELECT * FROM {table} WHERE {self._id}::text IN ({ids})")
        ]))  # fmt: skip
        content = _name(self._columns.content)
        yield Probe("error-texts", "error", FAILING, each([
            self._sql(attacker, f"SELECT {content}::integer FROM {table}"),
            self._sql(attacker, f"SELECT 1 FROM {table} WHERE {content}::integer = 1"),
            self._sql(attacker, f"SELECT 1 FROM {table} WHERE {content}::date > now() "
                                f"AND {field} = {other}"),
        ]))  # fmt: skip

    def _roles(self, attacker: str, victim: str) -> Iterator[Probe]:
        read = f"SELECT * FROM {self._table(victim)}"
        value = _text(self.target.value(victim))
        settings = [self._columns.setting] if self._columns.setting else []
        yield Probe("session-setting", "identity", "A session that calls itself another's.", each(
            self._sql(attacker, f"SELECT set_config({_text(name)}, {given}, {local})", read)
            for name in (*settings, "app.tenant", "app.tenant_id", "app.current_tenant",
                         "rls.tenant", "request.jwt.claims", "my.tenant")
            for given in (value, "''", "'*'") for local in ("true", "false")
        ))  # fmt: skip
        yield Probe("row-security", "identity", "Row-level security switched off.", each([
            self._sql(attacker, statement, read) for statement in (
                "SET LOCAL row_security = off", f"ALTER TABLE {self._table(victim)} "
                "DISABLE ROW LEVEL SECURITY", f"ALTER TABLE {self._table(victim)} "
                "NO FORCE ROW LEVEL SECURITY",
            )
        ]))  # fmt: skip
        yield Probe("set-role", "identity", "The role of another.", each(
            self._sql(attacker, f"{command} {role}", read)
            for command in ("SET LOCAL ROLE", "SET LOCAL SESSION AUTHORIZATION")
            for role in (_name(victim), _name(self.target.value(victim)), "postgres",
                         "pg_read_all_data", "DEFAULT")
        ))  # fmt: skip
        yield Probe("own-objects", "identity", "Views and functions of the tenant's own.", each([
            self._sql(attacker, f"CREATE TEMP VIEW scope_view AS {read}", "TABLE scope_view"),
            self._sql(attacker, "CREATE FUNCTION pg_temp.scope_all() RETURNS SETOF "
                                f"{self._table(victim)} LANGUAGE sql SECURITY DEFINER "
                                f"AS {_text(read)}", "SELECT * FROM pg_temp.scope_all()"),
            self._sql(attacker, f"CREATE TEMP TABLE scope_copy AS {read}", "TABLE scope_copy"),
        ]))  # fmt: skip

    def _catalogue(self, attacker: str, victim: str) -> Iterator[Probe]:
        name = _text(self.target.tenants[victim].collection.rpartition(".")[2])
        yield Probe("statistics", "statistics", "What the planner has sampled of rows.", each(
            self._sql(attacker, statement) for statement in (
                "SELECT most_common_vals::text, histogram_bounds::text FROM pg_stats "
                f"WHERE tablename = {name}",
                "SELECT stavalues1::text, stavalues2::text FROM pg_statistic",
                "SELECT most_common_vals::text FROM pg_stats_ext",
                "SELECT query FROM pg_stat_activity", "SELECT query FROM pg_stat_statements",
                "SELECT pg_catalog.pg_ls_logdir()::text", "SELECT * FROM pg_prepared_statements",
            )
        ))  # fmt: skip
        yield Probe("relations", "enumeration", "Views and other tables that hold the rows.", each([
            self._sql(attacker, "SELECT definition FROM pg_views WHERE schemaname NOT IN "
                                "('pg_catalog', 'information_schema')"),
            self._sql(attacker, "SELECT database_to_xml(true, false, '')::text"),
            self._sql(attacker, _SEARCH.format(sought=_text(question(victim)))),
        ]))  # fmt: skip

    def _writing(self, attacker: str, victim: str) -> Iterator[Probe]:
        table = self._table(victim)
        content = _name(self._columns.content)
        yield Probe("returning", "enumeration", "Writes that return rows, rolled back.", each(
            self._sql(attacker, statement) for statement in (
                f"UPDATE {table} SET {content} = {content} RETURNING *",
                f"DELETE FROM {table} RETURNING *", f"SELECT * FROM {table} FOR UPDATE",
                *(f"{self._insert(attacker, canary, metadata)} ON CONFLICT ({self._id}) DO UPDATE "
                  f"SET {content} = {table}.{content} RETURNING *"
                  for canary, metadata in self.rows(victim)[:2]),
            )
        ))  # fmt: skip

    def _insert(
        self, tenant: str, canary: Canary, metadata: Mapping[str, str], name: str | None = None
    ) -> str:
        columns = self._columns
        names = [columns.id, columns.content, columns.vector, columns.metadata]
        values = [
            _text(name or canary.id), _text(canary.text), _text(json.dumps(canary.vector)),
            _text(json.dumps({TAG: metadata[TAG]})),
        ]  # fmt: skip
        if self.target.tenant_field:
            names.append(self.target.tenant_field)
            values.append(_text(self.target.value(tenant)))
        listed = ", ".join(map(_name, names))
        return f"INSERT INTO {self._table(tenant)} ({listed}) VALUES ({', '.join(values)})"

    def _nearest(self, about: str) -> str:
        vector = _text(json.dumps(self.near(about)))
        order = f"ORDER BY {_name(self._columns.vector)} <-> {vector} LIMIT {self.target.top_k}"
        return f"SELECT * FROM {self._table(about)} {order}"

    @property
    def _id(self) -> str:
        return _name(self._columns.id)

    def _table(self, tenant: str) -> str:
        return ".".join(map(_name, self.target.tenants[tenant].collection.split(".")))

    def _sql(self, tenant: str, *statements: str) -> Request:
        return Request(tenant, "SQL", ";\n".join(statements))


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
