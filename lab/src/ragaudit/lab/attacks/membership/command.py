"""`ragaudit attack membership`."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from ragaudit.embedders.registry import DEFAULT as DEFAULT_EMBEDDER
from ragaudit.encoding.commands import ExitCode, failing
from ragaudit.lab.attacks.membership.strategies import DEFAULT, Strategy
from ragaudit.lab.risk_command.show import advancing, as_json

EXAMPLE = """Examples:

  ragaudit attack membership --endpoint openai:https://rag.example/v1 --model chat --key-file key
  --members in.jsonl --pool candidates.jsonl --output test

  ragaudit attack membership --endpoint rag.json --members in.jsonl --non-members out.jsonl
  --output test --claim-epsilon 2 --yes

  ragaudit attack membership --endpoint ragaudit:https://rag.example --window acme/w1
  --key-file key --members in.jsonl --pool candidates.jsonl --output test --claim-mu 1

Exit code: 0 PASS, 1 FAIL or CLAIM REFUTED, 2 the input is not usable, 3 the endpoint does not
answer (the same command goes on), 4 refused, 5 INCONCLUSIVE, or nobody agreed that it asks."""


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
    strategies: Annotated[str, typer.Option(help=f"Of {', '.join(Strategy)}.")] = ",".join(DEFAULT),
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
    from ragaudit.lab.attacks.membership import running  # loads scipy
    from ragaudit.lab.attacks.membership.campaign import Campaign, Claim, Plan
    from ragaudit.lab.attacks.membership.documents import PERMUTATIONS
    from ragaudit.lab.attacks.membership.endpoints import Caller
    from ragaudit.lab.attacks.membership.judging import judge
    from ragaudit.lab.attacks.signing import policy_bytes, signer_of
    from ragaudit.lab.risk.validation import check_probability
    from ragaudit.serving.settings import read_secret_file

    with failing(json):
        template = running.template(endpoint, model, window, top_k)
        key = "" if key_file is None else read_secret_file(key_file)
        template.check_key(key)
        signer = None if sign_key is None else signer_of(sign_key)
        about = None if policy is None else policy_bytes(policy)
        claim = Claim.of(claim_epsilon, claim_delta, claim_mu)
        classes = running.classes(members, non_members, pool, embedder, seed)
        plan = Plan(
            template, *classes, tuple(strategies.replace(" ", "").split(",")), seed,
            check_probability(threshold, "--threshold"), claim,
        )  # fmt: skip
        running.check(plan, budget)
        with closing(Campaign(output, plan)) as campaign:
            running.agree(plan, campaign, price, yes)
            exchanges = campaign.answered
            if campaign.left:
                total = len(exchanges) + campaign.left
                with (
                    closing(Caller(template, key, timeout)) as caller,
                    advancing(total, "questions", json) as done,
                ):
                    exchanges = list(campaign.ask(caller, done))
            with advancing(PERMUTATIONS, "permutations", json) as done:
                found = judge(plan, exchanges, lambda: done(1))
            running.write(output, plan, campaign, found, signer, about)
        if json:
            as_json(running.figures(plan, found))
        else:
            typer.echo(
                "\n".join([*running.summary(plan, found), f"page: {output / 'report.html'}"])
            )
    refuted = found.claim is not None and found.claim.refuted
    raise typer.Exit(ExitCode.FALSE if refuted else running.CODES[found.verdict])
