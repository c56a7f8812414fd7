"""What can be wrong with a language model. Each class keeps the family of `encoding.errors`.

RagauditError
└── UnavailableError
    └── GeneratorUnavailable   GeneratorSlow, GeneratorBusy
        └── OddGenerator   GeneratorNotDeterministic, TokenOutsideVocabulary
"""

from ragaudit.encoding.errors import UnavailableError


class GeneratorUnavailable(UnavailableError):
    """The language model behind the generation channel gives no answer that can be used."""


class GeneratorSlow(GeneratorUnavailable):
    """The language model did not answer in time."""


class GeneratorBusy(GeneratorUnavailable):
    """The language model, or what waits for it here, has too much to do: ask again later."""

    retry_after = 1


class OddGenerator(GeneratorUnavailable):
    """The language model answered what it was not asked for."""


class GeneratorNotDeterministic(OddGenerator):
    """The language model answers the same prompt differently: no vote could be recomputed."""


class TokenOutsideVocabulary(OddGenerator):
    """The language model named a token that the committed vocabulary does not have."""
