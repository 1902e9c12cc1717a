"""What results say once labels are known; without torch."""

from dualrs.report.accuracy import RADII, abstention, average_certified_radius, certified_accuracy

__all__ = ["RADII", "abstention", "average_certified_radius", "certified_accuracy"]
