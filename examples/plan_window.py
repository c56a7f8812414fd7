"""Plan a window from Python: noise and selection are arguments.

Run it with ``python plan_window.py``.
"""

import numpy as np
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.circuits.selection import scores, select
from ragaudit.cli.plan.collection import noise_of
from ragaudit.privacy.planning.budget import Targets, budget
from ragaudit.privacy.planning.retrieval import cost_of_recall, judge, simulate

targets = Targets("8", "0.000001", queries=50, coalition=5, delta_policy="0.00001")
plan = budget(targets)

generator = np.random.default_rng(1)
rows = quantise_rows(generator.normal(size=(200, 64)))
asked = quantise_rows(generator.normal(size=(20, 64))).astype(np.int16)
noise = noise_of(["0.01", "0.1", "1", plan.sigma], seed="1")
found = simulate((scores(rows, each) for each in asked), noise, select, top_k=5, trials=3)

print(plan.sigma, plan.coalition.price.epsilon)
for point in found.points:
    print(point.sigma, f"{point.recall.mean:.2f}")
cost = cost_of_recall(found, targets, 0.5)
verdict = judge(plan, found)
print(cost.best.sigma if cost.best else "not reached", f"{verdict.service}, {verdict.promise}")
