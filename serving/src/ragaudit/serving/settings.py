"""Settings of a service: one YAML file; ``RAGAUDIT_<SERVICE>__SECTION__KEY`` overrides it.

Secrets are never settings: members name the files that hold them, of one line each, readable by
their owner only. Relative paths are relative to the folder of the YAML file. What the validating
library finds wrong is said in words here, for settings and for calls.
"""

import inspect
import json
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)
from ragaudit.encoding.errors import MalformedError, MalformedSettings
from ragaudit.encoding.settings import check_environment, service_url
from ragaudit.encoding.text import DECIMAL

__all__ = [
    "DECIMAL_PATTERN",
    "HEX32_PATTERN",
    "NAME_PATTERN",
    "PROVIDER_PATTERN",
    "STANDARD_OUTPUT",
    "FileSettings",
    "OperationSettings",
    "Section",
    "Url",
    "attributes",
    "beside",
    "first_fault",
    "malformed",
    "read_secret_file",
]

PROVIDER_PATTERN = r"^[a-z0-9]([a-z0-9.-]{0,62}[a-z0-9])?$"
NAME_PATTERN = r"^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$"
DECIMAL_PATTERN = f"^{DECIMAL}$"
HEX32_PATTERN = r"^[0-9a-f]{64}$"

# A regular expression explains nothing to whoever did not write it.
_PATTERNS_IN_WORDS = {
    PROVIDER_PATTERN: "1 to 64 of a-z, 0-9, inner . and -",
    NAME_PATTERN: "1 to 64 of a-z, 0-9 and inner -",
    DECIMAL_PATTERN: 'a decimal in quotes such as "0.25", at most 12 places, no exponent',
    HEX32_PATTERN: "64 digits 0-9a-f",
}


def first_fault(error: ValidationError) -> tuple[str, str, str]:
    """Return where the first fault is, what is wrong and what would be right.

    The value itself is left out: it may be a secret.

    Args:
        error: of the validating library, with one fault at least.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    return (".".join(map(str, first["loc"])), *in_words(first))


def in_words(fault: Mapping[str, Any]) -> tuple[str, str]:
    """Return what is wrong and what would be right, of one fault as the library lists it.

    Args:
        fault: an item of `ValidationError.errors()`.
    """
    pattern = fault.get("ctx", {}).get("pattern")
    if pattern in _PATTERNS_IN_WORDS:
        return "not in the form that is demanded", _PATTERNS_IN_WORDS[pattern]
    if fault["type"] == "extra_forbidden":
        return "no such member", ""
    if fault["type"] == "value_error":
        what, _, expected = str(fault["msg"]).removeprefix("Value error, ").partition("; expected ")
        return what, expected
    return str(fault["msg"]), ""


def read_secret_file(path: Path) -> str:
    """Return the one line of a secret file.

    Args:
        path: of a file that nobody but its owner may read.

    Raises:
        MalformedSettings: it is missing, is not text, or others than its owner may read it.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        text = path.read_text(encoding="ascii")
    except OSError as error:
        raise MalformedSettings(
            f"cannot read a secret file: {error.strerror}",
            where=str(path),
            expected="a file of one line, mode 600, of the user that runs this",
        ) from None
    except UnicodeDecodeError:
        raise MalformedSettings(
            "secret file is not text", where=str(path), expected="one line of ASCII"
        ) from None
    # Refused, not warned of: a key that others may have read signs nothing.
    if mode & 0o077:
        raise MalformedSettings(
            f"others may read a secret file (mode {mode:o})", where=str(path), expected="mode 600"
        )
    return text.strip()


Model = TypeVar("Model", bound=BaseModel)


def attributes(kind: type) -> dict[str, str]:
    """Return what the docstring of a class says of each attribute, by name."""
    _, _, listed = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")
    said: dict[str, str] = {}
    for entry in re.split(r"\n(?=    \w)", f"\n{listed.partition(chr(10) * 2)[0]}")[1:]:
        names, _, meaning = " ".join(entry.split()).partition(": ")
        said |= dict.fromkeys(names.split(", "), meaning.rstrip("."))
    return said


class Described(BaseModel):
    """Its schema says of each member what the docstring says."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema with the meaning of each member."""
        schema = handler(core_schema)
        resolved = handler.resolve_ref_schema(schema)
        members = resolved["properties"]
        said, _, _ = inspect.cleandoc(cls.__doc__ or "").partition("\n\nAttributes:")
        resolved["description"] = said.replace("``", "`")
        for base in reversed(cls.__mro__):
            for name, meaning in attributes(base).items():
                if name in members:
                    members[name]["description"] = meaning.replace("``", "`")
        return schema


class Section(Described):
    """Settings that belong together; unknown members are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FileSettings(BaseSettings, Described):
    """A whole file. A subclass names its service and declares the sections."""

    model_config = SettingsConfigDict(extra="forbid", frozen=True, env_nested_delimiter="__")

    service: ClassVar[str]
    """In capitals, as in the names of environment variables."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let the environment override the file, and read nothing else."""
        # No .env file and no folder of secrets: what a service runs with stands where operators
        # look.
        return env_settings, init_settings

    @classmethod
    def schema_text(cls) -> str:
        """Return the JSON schema (2020-12) of the file, indented."""
        document = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **cls.model_json_schema(),
            "title": f"ragaudit {cls.service.lower()}",
            "description": _described(cls.service),
        }
        return json.dumps(document, indent=2, sort_keys=True)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the settings of a YAML file and the environment, paths as they are written.

        Args:
            path: of the file.

        Raises:
            MalformedSettings: the file is missing, is not YAML, or a member is unknown, missing or
                out of range; ``where`` names it.
            MalformedError: a variable of the environment looks like a setting and is none.
        """
        document = _document(path)
        check_environment(
            cls.service, cls.model_fields, beside=(f"RAGAUDIT_{cls.service}_SETTINGS",)
        )
        try:
            return cls(**document)
        except ValidationError as error:
            # Without the cause, whose text quotes the values.
            raise malformed(error, str(path)) from None
        except (SettingsError, TypeError):
            raise MalformedSettings(
                "a variable of the environment is not a value",
                where=f"{path} and {cls.model_config['env_prefix']}*",
                expected="JSON for a whole section",
            ) from None


def _described(service: str) -> str:
    return (
        f"Settings of the ragaudit {service.lower()}, a YAML file. In the environment "
        f"RAGAUDIT_{service}__SECTION__MEMBER overrides a member. Secrets are files: members that "
        "end in _file name them."
    )


def malformed(error: ValidationError, where: str) -> MalformedSettings:
    """Return the first validation error without the values that it was about.

    Args:
        error: of a section or of a whole file.
        where: the file, for the error.
    """
    member, what, expected = first_fault(error)
    return MalformedSettings(
        what, where=f"{where}: {member}" if member else where, expected=expected
    )


def beside(folder: Path, section: Model, *names: str) -> Model:
    """Return a section whose paths ``names``, where they are given, are relative to ``folder``.

    Args:
        folder: of the settings file.
        section: is not changed.
        names: of its members that are paths or None.
    """
    paths: Mapping[str, Path | None] = {name: getattr(section, name) for name in names}
    given = {name: folder / path for name, path in paths.items() if path is not None}
    return section.model_copy(update=given)


def _document(path: Path) -> dict[str, object]:
    try:
        # safe_load makes plain values only, never objects of a class that the file names.
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MalformedSettings(f"cannot read: {error.strerror}", where=str(path)) from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise MalformedSettings(f"not a YAML document{_fault(error)}", where=str(path)) from None
    if not isinstance(document, dict):
        raise MalformedSettings("not a YAML mapping", where=str(path), expected="name: value ...")
    return document


def _fault(error: Exception) -> str:
    """Where a file stops being YAML, and why."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        at = error.problem_mark
        return f": line {at.line + 1}, column {at.column + 1}: {error.problem}"
    if isinstance(error, yaml.reader.ReaderError):
        return f": character {error.position + 1}: {error.reason}"
    if isinstance(error, UnicodeDecodeError):
        return f": byte {error.start + 1}: not UTF-8"
    return ": nested too deeply" if isinstance(error, RecursionError) else f": {error}"


STANDARD_OUTPUT = Path("-")
"""Instead of a file of the audit stream."""


def _url(text: str) -> str:
    try:
        return service_url(text)
    except MalformedError as error:
        raise ValueError(f"{error.what}; expected {error.expected}") from None


Url = Annotated[str, AfterValidator(_url)]
"""Of a service: ``service_url`` says which."""


class OperationSettings(Section):
    """What an operator sees of a running service, and how it ends.

    Attributes:
        log_format: ``text``, or ``json`` with one object a line.
        metrics_host: the address at which Prometheus reads.
        metrics_port: its port, never that of the API; none, no metrics.
        audit_file: file of the audit stream, made with mode 600; ``-`` for standard output.
        trace_url: address of an OpenTelemetry collector (OTLP over HTTP); needs the extra ``otel``,
            whose exporter also reads the variables of OpenTelemetry and of proxies.
        drain_seconds: how long a service that was told to stop answers on while ``/readyz`` says
            503, so that a balancer finds out first.
    """

    log_format: Literal["text", "json"] = "text"
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = Field(default=None, ge=0, le=65535)
    audit_file: Path | None = None
    trace_url: Url | None = None
    drain_seconds: float = Field(default=0.0, ge=0, le=600)

    def beside(self, folder: Path) -> "OperationSettings":
        """Return the section with its file relative to ``folder``, that of the settings."""
        if self.audit_file is None or self.audit_file == STANDARD_OUTPUT:
            return self
        return self.model_copy(update={"audit_file": folder / self.audit_file})
