"""Dishonest provers in plain Python: an attack is an assignment, and not another program."""
