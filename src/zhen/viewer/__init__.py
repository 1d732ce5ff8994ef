"""Attention weights made visible: a page, a picture, and a table of scores."""
