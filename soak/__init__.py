"""Campaigns that take an hour and look for what no test has thought of: `python -m soak`, or `make soak`; not in CI.

kills: the real commands, killed at random moments and run again until they end by themselves.
mutations: ledgers, cards, weights, checkpoints, recipes and result tables, damaged and edited in every way.
simulations: certificates by every rule where the truth is known and errors are as likely as they can be.
"""
