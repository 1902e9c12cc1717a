"""Attacks on smoothed models: what is certified is tried, and what is not is searched for the nearest change.

Enters: a smoothed model, images and their certificates. Leaves: for each image whether its certificate was broken, and
the nearest image found that is answered otherwise.
"""

from dualrs.attacks.attacker import attack
from dualrs.attacks.campaign import attack_ledger
from dualrs.attacks.search import Effort
from dualrs.storage.attacks import Attack, Attacks

__all__ = ["Attack", "Attacks", "Effort", "attack", "attack_ledger"]
