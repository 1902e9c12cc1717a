"""Whole jobs from recipes: opened, trained in rounds, bundled, and what they will cost."""
