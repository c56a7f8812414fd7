"""Where the documents of the tenants are."""
