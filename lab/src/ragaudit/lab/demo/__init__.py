"""The demonstration: one window on real text, from commitments to a signed verdict."""
