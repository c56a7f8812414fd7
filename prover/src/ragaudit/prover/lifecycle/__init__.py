"""A window from its policy to its challenge."""
