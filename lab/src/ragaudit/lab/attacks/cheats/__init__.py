"""The cheats, one module for the checks that catch them: each lies in one method."""
