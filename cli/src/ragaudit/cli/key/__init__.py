"""`ragaudit key`."""
