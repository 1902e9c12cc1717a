"""Side-by-side timings, printed as ratios: `make bench`."""
