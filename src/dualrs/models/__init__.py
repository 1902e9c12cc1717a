"""Networks behind one protocol: noisy images in [0, 1] units and their sigma in, logits out."""
