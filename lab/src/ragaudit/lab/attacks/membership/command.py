"""`ragaudit attack membership`."""

import hashlib
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from ragaudit.embedders.registry import DEFAULT as DEFAULT_EMBEDDER
from ragaudit.embedders.registry import load
from ragaudit.encoding.commands import ExitCode, NotJudged, failing
from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.attacks.membership import endpoints
from ragaudit.lab.attacks.membership.campaign import Campaign, Claim, Plan, calling
from ragaudit.lab.attacks.membership.documents import Document, check_matched, choose, read
from ragaudit.lab.attacks.membership.endpoints import Template
from ragaudit.lab.attacks.membership.judging import Judgement, Verdict, check_questions, judge
from ragaudit.lab.attacks.membership.probing import DEFAULT, STRATEGIES
from ragaudit.lab.attacks.membership.reporting import figures, page, statement, summary
from ragaudit.lab.attacks.membership.scoring import PERMUTATIONS
from ragaudit.lab.attacks.signing import policy_bytes, signer_of
from ragaudit.lab.risk.validation import check_probability
from ragaudit.lab.risk_command.show import advancing, as_json, json_text
from ragaudit.serving.settings import read_secret_file

EXAMPLE = """Examples:

  ragaudit attack membership --endpoint openai:https://rag.example/v1 --model chat --key-file key
  --members in.jsonl --pool candidates.jsonl --output test

  ragaudit attack membership --endpoint rag.json --members in.jsonl --non-members out.jsonl
  --output test --claim-epsilon 2 --yes

  ragaudit attack membership --endpoint ragaudit:https://rag.example --window acme/w1
  --key-file key --members in.jsonl --pool candidates.jsonl --output test --claim-mu 1

Exit code: 0 PASS, 1 FAIL or CLAIM REFUTED, 2 the input is not usable, 3 the endpoint does not
answer (the same command goes on), 4 refused, 5 INCONCLUSIVE, or nobody agreed that it asks."""

_CODES = {
    Verdict.PASS: ExitCode.DONE,
    Verdict.FAIL: ExitCode.FALSE,
    Verdict.INCONCLUSIVE: ExitCode.INCOMPLETE,
}


def command(
    endpoint: Annotated[
        str,
        typer.Option(help="openai:URL, ragaudit:URL, or a file with a template."),
    ],
    members: Annotated[Path, typer.Option(help="Documents of the corpus: JSON lines, or *.txt.")],
    output: Annotated[Path, typer.Option(help="Folder for questions, answers and result.")],
    non_members: Annotated[
        Path | None, typer.Option(help="Documents that are not in it, of the same topics.")
    ] = None,
    pool: Annotated[
        Path | None, typer.Option(help="Instead: candidates, of which matching ones are chosen.")
    ] = None,
    model: Annotated[str, typer.Option(help="Model, with openai:URL.")] = "",
    window: Annotated[str, typer.Option(help="Open window, with ragaudit:URL.")] = "",
    top_k: Annotated[int, typer.Option(min=1, help="Documents per answer, with ragaudit:URL.")] = 3,
    key_file: Annotated[
        Path | None, typer.Option(help="File with the API key: one line, mode 600.")
    ] = None,
    strategies: Annotated[str, typer.Option(help=f"Of {', '.join(STRATEGIES)}.")] = ",".join(
        DEFAULT
    ),
    threshold: Annotated[float, typer.Option(help="AUC from which the test fails.")] = 0.65,
    claim_epsilon: Annotated[
        str | None,
        typer.Option(help="Claimed epsilon of a document's presence, over all its questions."),
    ] = None,
    claim_delta: Annotated[
        str | None, typer.Option(help="Delta of that claim; 0 if left out.")
    ] = None,
    claim_mu: Annotated[
        str | None, typer.Option(help="Instead: a claimed mu of Gaussian DP.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of order, folds and resampling.")] = 0,
    budget: Annotated[int, typer.Option(min=1, help="Most questions to ask.")] = 5000,
    price: Annotated[
        float, typer.Option(min=0, help="Price of 1,000 sent tokens, to show the cost.")
    ] = 0,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for each phase of a call.")] = 60,
    sign_key: Annotated[
        Path | None, typer.Option(help="A key file (`ragaudit key`): signs the result.")
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            help="Of the audited window that is asked, canonical JSON: its verdict may refer to "
            "the signed result then (`ragaudit verifier test-results attach`)."
        ),
    ] = None,
    embedder: Annotated[str, typer.Option(help="Embedder that matches topics.")] = DEFAULT_EMBEDDER,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before the first question.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Test from outside whether a RAG tells which documents are in its corpus."""
    with failing(json):
        template = _template(endpoint, model, window, top_k)
        key = "" if key_file is None else read_secret_file(key_file)
        template.check_key(key)
        signer = None if sign_key is None else signer_of(sign_key)
        about = None if policy is None else policy_bytes(policy)
        claim = Claim.of(claim_epsilon, claim_delta, claim_mu)
        classes = _classes(members, non_members, pool, embedder, seed)
        plan = Plan(
            template, *classes, tuple(strategies.replace(" ", "").split(",")), seed,
            check_probability(threshold, "--threshold"), claim,
        )  # fmt: skip
        _check(plan, budget)
        with closing(Campaign(output, plan)) as campaign:
            _agree(plan, campaign, price, yes)
            exchanges = campaign.answered
            if campaign.left:
                total = len(exchanges) + campaign.left
                with (
                    calling(template, key, timeout) as caller,
                    advancing(total, "questions", json) as done,
                ):
                    exchanges = list(campaign.ask(caller, done))
            with advancing(PERMUTATIONS, "permutations", json) as done:
                found = judge(plan, exchanges, lambda: done(1))
            _write(output, plan, campaign, found, signer, about)
        if json:
            as_json(figures(plan, found))
        else:
            typer.echo("\n".join([*summary(plan, found), f"page: {output / 'report.html'}"]))
    refuted = found.claim is not None and found.claim.refuted
    raise typer.Exit(ExitCode.FALSE if refuted else _CODES[found.verdict])


def _template(endpoint: str, model: str, window: str, top_k: int) -> Template:
    kind, _, url = endpoint.partition(":")
    if kind == "openai":
        if not model:
            raise MalformedError("no model", where="--model", expected="with openai:URL")
        return endpoints.openai(url, model)
    if kind == "ragaudit":
        if not window:
            raise MalformedError("no window", where="--window", expected="with ragaudit:URL")
        return endpoints.ragaudit(url, window, top_k)
    try:
        return Template.parse(Path(endpoint).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise MalformedError(
            "neither openai:URL nor ragaudit:URL nor a readable file",
            where=f"--endpoint {endpoint}",
        ) from error


def _classes(
    members: Path, non_members: Path | None, pool: Path | None, embedder: str, seed: int
) -> tuple[tuple[Document, ...], tuple[Document, ...]]:
    if (non_members is None) == (pool is None):
        raise MalformedError("no non-members", where="--non-members", expected="it, or --pool")
    inside, model = read(members, "--members"), load(embedder)
    if pool is not None:
        known = {each.id for each in inside}
        candidates = [each for each in read(pool, "--pool") if each.id not in known]
        outside = choose(inside, candidates, model)
    else:
        assert non_members is not None  # one of both was given
        outside = read(non_members, "--non-members")
    check_matched(inside, outside, model, seed)
    if not all(each.title for each in (*inside, *outside)):
        # Titles of one class alone would make its questions, and its citations, of another kind.
        inside, outside = ([replace(each, title="") for each in side] for side in (inside, outside))
    return tuple(inside), tuple(outside)


def _check(plan: Plan, budget: int) -> None:
    questions, _ = plan.cost()
    if questions > budget:
        raise RefusedError(
            f"{questions} questions", where="--budget",
            expected=f"at most {budget}: fewer documents or strategies, or a larger budget",
        )  # fmt: skip
    check_questions(plan)


def _agree(plan: Plan, campaign: Campaign, price: float, yes: bool) -> None:
    questions, tokens = plan.cost()
    cost = f", about {price * tokens / 1000:.2f} for them" if price else ""
    typer.echo(
        f"{len(plan.documents)} documents, {questions} questions ({campaign.left} left), about "
        f"{tokens} tokens sent{cost}; answers are charged by the endpoint. Each document is "
        f"asked about {questions // len(plan.documents)} times: a service with budgets for "
        "documents is best asked on a copy of its index with fresh ones.",
        err=True,
    )
    if campaign.left and not yes and not _agreed():
        raise NotJudged("nothing was asked, so nothing is judged", expected="yes, or --yes")


def _agreed() -> bool:
    try:
        return typer.confirm("Ask them?", err=True)
    except typer.Abort as end:
        if isinstance(end.__context__, KeyboardInterrupt):
            raise
        return False  # nobody is there to be asked


def _write(
    output: Path, plan: Plan, campaign: Campaign, found: Judgement, signer: PrivateKey | None,
    policy: bytes | None,
) -> None:  # fmt: skip
    (output / "report.html").write_text(page(plan, found), encoding="utf-8")
    (output / "result.json").write_text(json_text(figures(plan, found)) + "\n", encoding="utf-8")
    if signer is not None:
        envelope = statement(plan, campaign, found, policy).issue(signer)
        (output / "result.dsse.json").write_bytes(envelope)
        digest = hashlib.sha256(envelope).hexdigest()
        (output / "result.sha256").write_text(f"{digest}  result.dsse.json\n", encoding="ascii")
