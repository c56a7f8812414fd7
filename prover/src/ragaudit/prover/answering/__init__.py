"""From a query to its receipt."""
