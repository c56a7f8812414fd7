"""The generation channel: documents pay, and answer together (spec 11)."""
