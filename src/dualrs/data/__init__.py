"""Datasets: indexed 8-bit images under stable ids, with labels that only reports and training read."""
