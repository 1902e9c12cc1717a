"""Training: the base networks that smoothing wants. Every training can be stopped and goes on where it was."""
