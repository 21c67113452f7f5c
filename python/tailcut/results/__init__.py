"""Runs on disk, and what is computed from them."""
