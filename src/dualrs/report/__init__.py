"""What results say once labels are known; without torch."""

from dualrs.report.accuracy import abstention, average_certified_radius, certified_accuracy
from dualrs.theory.radius import RADII

__all__ = ["RADII", "abstention", "average_certified_radius", "certified_accuracy"]
