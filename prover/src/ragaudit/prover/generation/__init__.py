"""The generation channel: documents pay, and answer in words together (spec 11)."""
