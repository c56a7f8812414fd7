"""Settings of what the prover builds on: the document store, the embedder, the language model.

Secrets (a token, a connection string, a key) are in files of their own.
"""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator
from ragaudit.embedders import registry
from ragaudit.encoding.errors import MalformedSettings
from ragaudit.privacy.accounting.generation import channel_loss
from ragaudit.serving.settings import Section, Url, beside

# Chroma's own rule for names, which also keeps a name inside its place in a path.
Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]$")]
# PostgreSQL cuts longer identifiers off without a word; a % would be a parameter to psycopg.
Identifier = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[^\x00%]+$")]


class ChromaSettings(Section):
    """A Chroma server, and the collection of each tenant.

    Attributes:
        url: address of the server.
        collections: the collection of each tenant.
        tenant: the tenant within Chroma, which is none of ours.
        database: the database within Chroma.
        token_file: a secret file with the token.
        token_header: which header carries the token; ``authorization`` sends it as a bearer token.
        ca_file: PEM file of the certificate authorities to trust instead of the usual.
        timeout_seconds: timeout of each phase of a call.
        verify_vectors: whether the vectors of an answer's rows are fetched with their texts; a row
            whose vector was changed is withdrawn.
    """

    url: Url
    collections: Mapping[str, Name] = Field(min_length=1)
    tenant: Name = "default_tenant"
    database: Name = "default_database"
    token_file: Path | None = None
    token_header: Literal["x-chroma-token", "authorization"] = "x-chroma-token"  # noqa: S105 - a name
    ca_file: Path | None = None
    timeout_seconds: float = Field(default=30.0, gt=0, le=600)
    verify_vectors: bool = True

    @model_validator(mode="after")
    def _of_one_tenant_each(self) -> Self:
        # What belongs to two tenants isolates neither.
        if len(set(self.collections.values())) < len(self.collections):
            raise ValueError("two tenants have one collection; expected one collection a tenant")
        return self


class TableSettings(Section):
    """The rows of one tenant: a table, or the rows of it that hold ``tenant_value``.

    Attributes:
        schema: schema of the table.
        table: the table or view.
        id: column of the rows' ids, unique.
        content: the column of texts.
        vector: the column of vectors.
        attributes: JSON column of the rows' attributes.
        attribute_columns: columns that are put into the attributes by name, where they win.
        tenant_column: the column that tells tenants apart where they share a table; needs
            ``tenant_value``.
        tenant_value: the value of this tenant's rows.
        metric: the metric by which applications rank, which PostgreSQL does not say; null: the
            policy's.
    """

    schema_name: Identifier = Field(default="public", alias="schema")
    table: Identifier
    id: Identifier = "id"
    content: Identifier = "content"
    vector: Identifier = "embedding"
    attributes: Identifier | None = None
    attribute_columns: tuple[Identifier, ...] = ()
    tenant_column: Identifier | None = None
    tenant_value: str | None = Field(default=None, min_length=1, max_length=512)
    metric: Literal["cosine", "inner-product", "l2"] | None = None

    @model_validator(mode="after")
    def _tenant_with_value(self) -> Self:
        if (self.tenant_column is None) != (self.tenant_value is None):
            raise ValueError("a tenant column without its value; expected both or neither")
        return self


class PgvectorSettings(Section):
    """A PostgreSQL database with pgvector, and the rows of each tenant.

    Attributes:
        dsn_file: a secret file with one connection string of libpq.
        tables: the rows of each tenant.
        connect_timeout_seconds: timeout of a new connection.
        statement_timeout_seconds: timeout of a statement.
        pool_size: the most connections.
        verify_vectors: whether the vectors of an answer's rows are compared, as for Chroma.
    """

    dsn_file: Path
    tables: Mapping[str, TableSettings] = Field(min_length=1)
    connect_timeout_seconds: int = Field(default=10, ge=2, le=600)
    statement_timeout_seconds: float = Field(default=60.0, gt=0, le=3600)
    pool_size: int = Field(default=8, ge=1, le=100)
    verify_vectors: bool = True

    @model_validator(mode="after")
    def _of_one_tenant_each(self) -> Self:
        seen: dict[tuple[str, str], list[TableSettings]] = {}
        for table in self.tables.values():
            seen.setdefault((table.schema_name, table.table), []).append(table)
        for shared in seen.values():
            # Rows of one table are told apart by one column, or two tenants could hold a row.
            columns = {table.tenant_column for table in shared}
            values = {table.tenant_value for table in shared}
            if len(shared) > 1 and (
                None in columns or len(columns) > 1 or len(values) < len(shared)
            ):
                raise ValueError(
                    "two tenants share rows of a table; expected one tenant_column and "
                    "a tenant_value of its own for each"
                )
        return self


class BackendSettings(Section):
    """Where the documents are: in the prover's own database (``store``), or in a vector store.

    Attributes:
        kind: the prover's own database, or the vector store.
        page_rows: rows read at a time.
        poll_seconds: how often a vector store, to which others may write, is compared with what
            open windows have committed to; 0 for never.
        chroma: the server, where it is the kind.
        pgvector: the database, where it is the kind.
    """

    kind: Literal["store", "chroma", "pgvector"] = "store"
    page_rows: int = Field(default=500, ge=1, le=10_000)
    poll_seconds: float = Field(default=300.0, ge=0, le=86_400)
    chroma: ChromaSettings | None = None
    pgvector: PgvectorSettings | None = None

    @property
    def tenants(self) -> list[str]:
        """Tenants of an outside store, rising; none of the prover's own, which are ingested."""
        outside: Mapping[str, object] = {}
        if self.chroma is not None:
            outside = self.chroma.collections
        elif self.pgvector is not None:
            outside = self.pgvector.tables
        return sorted(outside)

    @model_validator(mode="after")
    def _section_of_the_kind(self) -> Self:
        for name in ("chroma", "pgvector"):
            given = getattr(self, name) is not None
            if given != (self.kind == name):
                say = "is given" if given else "is missing"
                raise ValueError(f"section {name} {say}, and the kind is {self.kind}")
        return self


def absolute_backend(folder: Path, settings: BackendSettings) -> BackendSettings:
    """Return the settings with paths relative to the folder of the settings file.

    Args:
        folder: of the settings file.
        settings: are not changed.
    """
    chroma, pgvector = settings.chroma, settings.pgvector
    if chroma is not None:
        chroma = beside(folder, chroma, "token_file", "ca_file")
    if pgvector is not None:
        pgvector = beside(folder, pgvector, "dsn_file")
    return settings.model_copy(update={"chroma": chroma, "pgvector": pgvector})


Probe = Annotated[str, Field(min_length=1, max_length=256)]


class EndpointSettings(Section):
    """A service that speaks OpenAI's ``POST /embeddings``.

    Attributes:
        url: address of the service, without ``/embeddings``.
        model: the model to ask for.
        dimension: the length of its embeddings.
        send_dimension: whether the call asks for that length.
        prompt_template: what is sent for a text.
        probes: texts whose embeddings C_emb commits to; the built-in ones if there are none here.
        key_file: a secret file with the API key.
        ca_file: PEM file of the certificate authorities to trust instead of the usual.
        batch: the most texts in one call.
        timeout_seconds: timeout of each phase of a call.
    """

    url: Url
    model: str = Field(min_length=1, max_length=256)
    dimension: int = Field(ge=1, le=3072)
    send_dimension: bool = False
    prompt_template: str = Field(default="{text}", pattern=r"\{text\}", max_length=4096)
    probes: tuple[Probe, ...] = Field(default=(), max_length=64)
    key_file: Path | None = None
    ca_file: Path | None = None
    batch: int = Field(default=64, ge=1, le=2048)
    timeout_seconds: float = Field(default=30.0, gt=0, le=600)


class EmbedderSettings(Section):
    """Which embedder; what it is made of is what C_emb commits to.

    Attributes:
        name: committed as C_emb; ``none``: applications send vectors.
        folder: the model's folder, with the name ``sentence-transformers``.
        endpoint: the service, with the name ``openai-compatible``.
    """

    name: str = registry.DEFAULT
    folder: Path | None = None
    endpoint: EndpointSettings | None = None

    @model_validator(mode="after")
    def _section_of_the_name(self) -> Self:
        for member, name in (("folder", "sentence-transformers"), ("endpoint", registry.ENDPOINT)):
            given = getattr(self, member) is not None
            if given != (self.name == name):
                say = "is given" if given else "is missing"
                raise ValueError(f"{member} {say}, and the embedder is {self.name}")
        return self


def absolute_embedder(folder: Path, settings: EmbedderSettings) -> EmbedderSettings:
    """Return the settings with paths relative to the folder of the settings file.

    Args:
        folder: of the settings file.
        settings: are not changed.
    """
    settings = beside(folder, settings, "folder")
    if settings.endpoint is None:
        return settings
    endpoint = beside(folder, settings.endpoint, "key_file", "ca_file")
    return settings.model_copy(update={"endpoint": endpoint})


_RATIO = r"^[1-9][0-9]{0,11}(/[1-9][0-9]{0,11})?$"


def exact_text(value: object) -> object:
    """YAML reads 2 and 1 as numbers; an exact integer is a text, a float is not."""
    return str(value) if type(value) is int else value


Ratio = Annotated[
    str,
    BeforeValidator(exact_text),
    Field(pattern=_RATIO),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": _RATIO}, {"type": "integer"}]}),
]


class GeneratorSettings(Section):
    """A service that speaks OpenAI's API.

    Attributes:
        url: address of the service, without ``/completions`` or ``/chat/completions``. Turn prefix
            caching on there.
        manifest_file: what new windows commit to.
        vocabulary_file: a JSON list of the texts of all tokens, of a model that is asked for one at
            a time; without it whole answers are asked for.
        served_as: what the service calls the model, where that is not the manifest's name.
        key_file: a secret file with the API key.
        ca_file: PEM file of the certificate authorities to trust instead of the usual.
        batch: the most prompts in one call.
        parallel: the most calls at a time.
        questions: answers that are generated at a time.
        timeout_seconds: timeout of each phase of a call.
        deadline_seconds: after this an answer is given up.
    """

    url: Url
    manifest_file: Path
    vocabulary_file: Path | None = None
    served_as: str | None = Field(default=None, min_length=1, max_length=256)
    key_file: Path | None = None
    ca_file: Path | None = None
    batch: int = Field(default=16, ge=1, le=2048)
    parallel: int = Field(default=4, ge=1, le=64)
    questions: int = Field(default=4, ge=1, le=64)
    timeout_seconds: float = Field(default=30.0, gt=0, le=600)
    deadline_seconds: float = Field(default=120.0, gt=0, le=3600)

    def beside(self, folder: Path) -> "GeneratorSettings":
        """Return the section with its files relative to ``folder``, that of the settings."""
        return beside(folder, self, "manifest_file", "vocabulary_file", "key_file", "ca_file")


class BinSettings(Section):
    """Where murag-ada looks for documents: bins of scores, read until there are enough.

    Attributes:
        edges: lower edges of the bins in lattice units, falling.
        epsilon: epsilon of one count; a part of the question's.
        enough: documents, by a noisy sum, that end the reading.
    """

    edges: list[int] = Field(min_length=1, max_length=64)
    epsilon: Ratio
    enough: int = Field(ge=0, le=2**32)


class KeywordSettings(Section):
    """Answers by keywords that many voters name (dp-ksa), in place of votes on each token.

    Attributes:
        epsilon_choice: epsilon of choosing how many keywords.
        sigma: half of the deviation of the test's noise.
        delta_test: delta of the test in one use.
        delta_conversion: delta of all uses together.
        sizes: numbers of keywords to choose from.
        stop_words: words that never count.
        final: whether the model writes the answer from the keywords, or whether they are the
            answer.
    """

    epsilon_choice: Ratio
    sigma: Ratio
    delta_test: Ratio
    delta_conversion: Ratio
    sizes: list[int] = Field(min_length=1, max_length=64)
    stop_words: list[str] = Field(default=[], max_length=1000)
    final: Literal["model", "keywords"] = "model"


class ChannelSettings(Section):
    """The generation channel of new windows (docs/spec/11-generation.md §11.8).

    Attributes:
        mechanism: how paying documents are chosen.
        epsilon: epsilon of one question; with ``keywords`` of all uses of a document together, and
            left out as small as it may be.
        epsilon_token: epsilon of one token; not with ``keywords``.
        keywords: answers by keywords instead of tokens.
        voters: how many groups of documents vote.
        slots_per_voter: how many documents a voter reads.
        agreement: how many votes count as agreement; half of the voters if left out.
        tokens: the most tokens of an answer.
        uses: how often a document may pay in the window.
        threshold: the score above which a document pays, in lattice units; for murag alone.
        bins: the bins of murag-ada.
        prove: whether the sampled charges are proven, or all.
        group: how many charges one proof is about.
        differing_votes: votes of a replayed answer that are no fault if they differ, though a
            window with one is CONDITIONAL; without it nothing is replayed.
        answer_delay_seconds: an answer leaves this long after its charge, or a whole multiple.
        reuse: whether an account's identical request has its stored answer for the whole window,
            and not only within ``retry_seconds``.
    """

    mechanism: Literal["murag", "murag-ada", "naive"] = "murag"
    epsilon: Ratio | None = None
    epsilon_token: Ratio | None = None
    keywords: KeywordSettings | None = None
    voters: int = Field(ge=1, le=2**16)
    slots_per_voter: int = Field(default=1, ge=1, le=2**16)
    agreement: Ratio | None = None
    tokens: int = Field(default=64, ge=1, le=4096)
    uses: int = Field(ge=1, le=2**16)
    threshold: int | None = Field(default=None, ge=0)
    bins: BinSettings | None = None
    prove: Literal["sampled", "all"] = "sampled"
    group: int = Field(default=100, ge=1, le=2**16)
    differing_votes: int | None = Field(default=None, ge=0, le=10**6)
    answer_delay_seconds: int = Field(default=10, ge=1, le=3600)
    reuse: bool = True

    @model_validator(mode="after")
    def _one_threshold(self) -> "ChannelSettings":
        if self.bins is not None and self.threshold is not None:
            raise ValueError("threshold and bins; expected one of them")
        return self

    @model_validator(mode="after")
    def _one_answerer(self) -> "ChannelSettings":
        if (self.keywords is None) == (self.epsilon_token is None):
            raise ValueError("epsilon_token or keywords; expected one of them")
        if self.keywords is None and self.epsilon is None:
            raise ValueError("no epsilon; expected that of a question")
        # A member that nothing reads would look like a promise.
        of_tokens = {"slots_per_voter", "agreement"} & self.model_fields_set
        if self.keywords is not None and of_tokens:
            raise ValueError(f"{min(of_tokens)} beside keywords; expected of votes on tokens alone")
        return self

    def _answerer(self) -> dict[str, Any]:
        if self.keywords is None:
            return {
                "kind": "dp-rag",
                "epsilon_token": self.epsilon_token,
                "voters": self.voters,
                "slots_per_voter": self.slots_per_voter,
                "threshold": self.agreement,
                "tokens": self.tokens,
            }
        return {
            "kind": "dp-ksa",
            **self.keywords.model_dump(),
            # As sets: a policy has one spelling of them.
            "sizes": sorted(set(self.keywords.sizes)),
            "stop_words": sorted(set(self.keywords.stop_words)),
            "voters": self.voters,
            "tokens": self.tokens,
        }

    def _epsilon(self) -> str | None:
        words = self.keywords
        if words is None:
            return self.epsilon
        choice, sigma, delta = (
            Fraction(each) for each in (words.epsilon_choice, words.sigma, words.delta_conversion)
        )
        least = channel_loss(choice, sigma, self.uses, delta)
        if self.epsilon is not None and Fraction(self.epsilon) < least:
            raise MalformedSettings(
                f"{self.epsilon} is less than {self.uses} uses cost",
                where="window.generation.epsilon",
                expected=f"at least {least}, or none",
            )
        return self.epsilon or str(least)

    def member(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Return the policy's member.

        Args:
            manifest: of the model, as JSON.

        Raises:
            MalformedSettings: an epsilon that is smaller than the loss.
            InvalidArgumentError: parameters of keywords that have no loss.
        """
        differing, bins = self.differing_votes, self.bins
        return {
            "mechanism": self.mechanism,
            "answerer": self._answerer(),
            "epsilon": self._epsilon(),
            "uses": self.uses,
            "threshold": self.threshold if bins is None else bins.model_dump(),
            "charges": {"prove": self.prove, "group": self.group},
            "replay": None if differing is None else {"differing_votes": differing},
            "generator": manifest,
            "answer_delay_seconds": self.answer_delay_seconds,
            "reuse": self.reuse,
        }
