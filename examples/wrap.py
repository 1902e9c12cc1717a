"""Ten lines around your own networks: `python examples/wrap.py`."""

from digits import classifier, router, test
from dualrs import DualSmoothed

dual = DualSmoothed(router(), classifier(), sigmas=(0.12, 0.25, 0.5), sigma_e=0.5)
images = test().pixels[:5]  # uint8, or float in [0, 1]; one image or a batch

print(dual.certify(images, n=10_000, n0=100, alpha=0.001, rule="fusion", seed=0))
print(dual.predict(images, n=1_000, alpha=0.001, seed=0))

one = dual.certify(images[1])  # without a seed: a secret one, which stands in the certificate
print(one.prediction, one.radius, one.sigma_c, one.r_sigma, one.r_c, one.limited_by)
print(dual.certify(images[1], seed=one.seed) == one)
