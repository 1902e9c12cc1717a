"""dualrs."""
