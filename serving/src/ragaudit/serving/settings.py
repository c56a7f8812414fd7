"""Settings of a service: one YAML file; ``RAGAUDIT_<SERVICE>__SECTION__KEY`` overrides it.

Secrets are never settings: members name the files that hold them. Relative paths are relative to
the folder of the YAML file.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)
from ragaudit.encoding.errors import MalformedSettings
from ragaudit.encoding.settings import check_environment
from ragaudit.serving.validation import first_fault

__all__ = ["FileSettings", "Section", "beside", "malformed"]

Model = TypeVar("Model", bound=BaseModel)


class Section(BaseModel):
    """Settings that belong together; unknown members are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FileSettings(BaseSettings):
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
