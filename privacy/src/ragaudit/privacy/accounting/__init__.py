"""Privacy accounting: from the noise to epsilon, and back. Derivations: docs/notes/accounting.md.

events       NoisyScores and what is made of it: coalitions, compositions, a whole tenant
gaussian     epsilon(event, delta), gives(event, epsilon, delta), calibrate(...)
accountants  the same question by four methods; what a noise affords
report       the whole table of a verdict (docs/spec/07-coalition.md §7.4), its type in `table`
generation   what generated answers cost
"""
