"""The committed indexes of the tenants, and how they are made and kept."""
