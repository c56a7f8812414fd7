"""Planning a window before it is committed: sigma, budget, and what the noise does to retrieval.

    targets = Targets("1", "0.000001", queries=50, coalition=10, delta_policy="0.00001")
    plan = budget(targets)                       sigma, epsilon by coalition, the paper's noise
    simulation = simulate(scored, ...)           recall and rank loss against sigma
    cost_of_recall(simulation, targets, 0.9)     the sigma and the epsilon of a wanted recall
    largest_recall(1, "1e-6", 250, K / N)        what no mechanism with fresh noise can exceed
    judge(plan, simulation)                      one sentence: how useful, how much is promised

The first two stand in `budget`, the others in `retrieval`. Scores and noise are integers on the
score lattice, sigma is in cosine units. Pure functions: the sampler and the selection are
arguments, so that what is simulated is what is deployed.
"""
