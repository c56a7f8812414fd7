"""What is stored and held in memory of a window."""
