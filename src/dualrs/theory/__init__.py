"""Pure functions over numbers and arrays: bounds, radii, and how the error probability is spent.

Enters: counts, probabilities, standard deviations. Leaves: bounds and radii.
Nothing here knows of torch, of files or of labels.
"""
