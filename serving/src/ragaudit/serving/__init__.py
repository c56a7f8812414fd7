"""How both services listen: `server` runs one, `connections` bounds what a peer may hold."""
