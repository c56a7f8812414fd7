"""Measurements of the parts, each beside a stated baseline of the same run."""
