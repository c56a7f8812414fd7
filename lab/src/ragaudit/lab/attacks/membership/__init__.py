"""Whether a RAG tells which documents it holds: the membership test, from outside.

Questions are made from documents that are known to be in the corpus and from others that are not;
how well the answers tell both apart is the area under the ROC curve (docs/notes/membership.md).
"""
