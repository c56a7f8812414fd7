"""Where the documents of the tenants are: an interface, and an in-process index behind it."""
