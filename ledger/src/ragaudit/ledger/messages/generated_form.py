"""Whether an answer in words is one that the policy's answerer can give (spec 11.10, step 4)."""

from ragaudit.ledger.messages.answerers import KeywordVoting, TokenVoting
from ragaudit.ledger.messages.generated_answers import (
    AnyAnswer,
    GeneratedAnswer,
    GeneratedKeywords,
)
from ragaudit.ledger.messages.generation_terms import GenerationTerms
from ragaudit.ledger.messages.receipt_body import reject

__all__ = ["check_form"]


def check_form(answer: AnyAnswer, terms: GenerationTerms) -> None:
    """Check that the answerer of these terms can give an answer.

    Raises:
        ReceiptRejected: it is of another form, has more than the terms allow, or keywords with
            another text than their own where no model writes it.
    """
    answerer = terms.answerer
    if isinstance(answerer, KeywordVoting) and isinstance(answer, GeneratedKeywords):
        _check_keywords(answer, answerer)
    elif isinstance(answerer, TokenVoting) and isinstance(answer, GeneratedAnswer):
        _check_tokens(answer, answerer, terms)
    else:
        due = "keywords" if isinstance(answerer, KeywordVoting) else "tokens"
        reject("an answer of another answerer", "answer", f"one of {due}")


def _check_keywords(answer: GeneratedKeywords, answerer: KeywordVoting) -> None:
    found, most = answer.keywords or (), answerer.sizes[-1]
    # Fewer than every size are possible: a word that no voter has is none to release.
    if len(found) > most:
        reject(f"{len(found)} keywords", "answer.keywords", f"at most {most}")
    if stopped := set(found) & set(answerer.stop_words):
        reject(f"the stop word {min(stopped)!r}", "answer.keywords", "words that count")
    if answerer.final == "keywords" and answer.text != " ".join(found):
        reject("not the released words", "answer.text", "these, joined by spaces")


def _check_tokens(answer: GeneratedAnswer, answerer: TokenVoting, terms: GenerationTerms) -> None:
    tokens, vocabulary = answer.tokens, terms.vocabulary
    if len(tokens) > answerer.tokens:
        reject(f"{len(tokens)} tokens", "answer.tokens", f"at most {answerer.tokens}")
    if strange := [token for token in tokens if token >= vocabulary.size]:
        reject(f"token {strange[0]}", "answer.tokens", f"below {vocabulary.size}")
    if vocabulary.end in tokens[:-1]:
        reject("tokens behind the end", "answer.tokens", "the end token last")
    most = terms.answer_epsilon // answerer.epsilon_token
    if answer.private > most:
        reject(f"{answer.private} private tokens", "answer.private", f"at most {most}")
