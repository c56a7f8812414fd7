"""`ragaudit reproduce`: the papers' numbers beside ours, with the reason where they differ."""
