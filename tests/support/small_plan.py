"""A plan for the demonstration's machinery that is over in half a minute: two tenants, four
accounts, one small window."""

from ragaudit.cli.corpus import Passage
from ragaudit.embedders.base import embed_quantised
from ragaudit.embedders.registry import load
from ragaudit.lab.demo.plan import AccountPlan, Claim, Plan, WindowPlan
from ragaudit.lab.demo.run import Options

WINDOW = "small"
SUBJECTS = {
    "garden": ("tomatoes", "roses", "compost", "pruning apple trees", "watering lavender"),
    "kitchen": ("sourdough bread", "risotto", "sharpening knives", "stock", "caramel"),
}
ASPECTS = ("in spring", "in a small space", "for beginners", "step by step", "common mistakes")


def small_plan(options: Options) -> Plan:
    """25 passages a tenant; 8 questions for each anchored account, 3 for each plain one."""
    embedder = load()
    corpus = {
        tenant: [
            Passage(f"{subject}/{aspect}", f"Notes on {subject} {aspect}, number {i}-{j}.")
            for i, subject in enumerate(subjects)
            for j, aspect in enumerate(ASPECTS)
        ]
        for tenant, subjects in SUBJECTS.items()
    }
    indexes = {
        tenant: embed_quantised(embedder, [each.text for each in passages])
        for tenant, passages in corpus.items()
    }
    terms = {
        "epsilon_acc": None if options.sigma else "10",
        "sigma": options.sigma,
        "top_k_max": 5,
        "queries_per_account": 10,
        "slots": 8,
        "coalition_max": 2,
        "claim_margin_seconds": 2,
        "estimator": {"sketch_bits": 512, "tau_seconds": 600},
        "experiment_seed": options.seed,
    }
    windows = [WindowPlan(WINDOW, "A", 8, 18, 6, terms)]  # long enough on a busy machine
    claim = Claim("null-replace", 10, 2, "0.000001", "0.000001")
    return Plan(corpus, indexes, _accounts(), windows, claim, embedder)


def _accounts() -> list[AccountPlan]:
    accounts = []
    for tenant, subjects in SUBJECTS.items():
        asked = [f"What about {subject} {aspect}?" for subject in subjects for aspect in ASPECTS]
        for number, count in ((0, 8), (1, 3)):
            accounts.append(
                AccountPlan(
                    name=f"{tenant}-{number}",
                    tenant=tenant,
                    anchored=number == 0,
                    crashes=(tenant, number) == ("garden", 0),
                    submits=True,
                    disputes=(tenant, number) == ("kitchen", 0),
                    questions={WINDOW: asked[number::2][:count]},
                )
            )
    return accounts
