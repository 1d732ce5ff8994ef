"""The run directory: its name, what is in it, and where it came from."""
