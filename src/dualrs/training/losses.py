"""The router's losses: section 5.2.1 of the paper, with the consistency loss of Jeong and Shin (2020).

Enters: R_c(x, sigma_i), the radii of the classifier under each candidate, (inputs, candidates), sigmas ascending; and
the router's logits on m noisy copies of each input, (m, inputs, candidates). Leaves: one number to minimise,
E[w_e (soft cross-entropy + w_r consistency)]. Only the logits carry a gradient.
"""

import math
from typing import Literal

import torch
from torch import Tensor

from dualrs.errors import BadData, BadModel, BadSetting

Gate = Literal["strong", "weak", "none"]


def keep(radii: Tensor) -> Tensor:
    """Which inputs to train on: those with a positive radius under some sigma. Shape (inputs,)."""
    return (radii > 0).any(dim=1)


def radius_scale(radii: Tensor) -> float:
    """The largest radius in the labels: the C that brings them all to [0, 1]."""
    largest = float(radii.max()) if len(radii) else 0.0
    if not 0 < largest < math.inf:
        raise BadData(
            f"the largest radius in the router's labels is {largest:g}, not a positive number: there is nothing to "
            "learn from; check that the classifier, its denoiser and the labels of the images belong together"
        )
    return largest


def balance_weights(radii: Tensor, balanced: bool) -> Tensor:
    """w_e of every kept input: 1/q_i, q_i the fraction of them whose best sigma is the same; or 1. Shape (inputs,).

    The best sigma is the smallest of equals. Balanced weights do not average to 1 but to the number of sigmas that are
    best for someone.
    """
    if not balanced:
        return torch.ones_like(radii[:, 0])
    best = radii.argmax(dim=1)
    return len(best) / best.bincount()[best].to(radii.dtype)


def soft_labels(radii: Tensor) -> Tensor:
    """Softmax of the radii over the candidates: a wrong sigma costs by how much radius it loses."""
    return radii.softmax(dim=-1)


def hard_labels(radii: Tensor) -> Tensor:
    """All weight on the best sigma, the smallest of equals: what soft labels are compared with."""
    return torch.zeros_like(radii).scatter(-1, radii.argmax(dim=-1, keepdim=True), 1.0)


def soft_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy with labels (batch, candidates), averaged over the noisy copies. Shape (batch,)."""
    return -(labels * log_softmax(logits)).sum(dim=-1).mean(dim=0)


def consistency(logits: Tensor, *, consistency_weight: float, entropy_weight: float) -> Tensor:
    """L_con = lambda * mean_j KL(f_hat || f_j) + eta * H(f_hat), f_hat the mean of f_j over the copies. Shape (batch,).

    As in Jeong and Shin, the gradient passes through f_hat too. Unlike there, log f_hat is a logsumexp: an answer
    whose probability is 0 in float32 on every copy would make the gradient NaN.
    """
    log_copies = log_softmax(logits)
    log_mean = mean_of_logs(log_copies)
    # not log_mean.exp(): gaps of a thousand, times lambda, would be rounded off against gradients of order 1
    mean = logits.softmax(dim=-1, dtype=log_copies.dtype).mean(dim=0)
    gap = log_copies - log_mean
    # sum_k f_jk - mean_k = 0, added to -sum_k mean_k gap_k: no term is negative, nothing cancels where copies agree
    divergence = (mean * (gap.expm1() - gap)).sum(dim=-1).mean(dim=0)
    entropy = -(mean * log_mean).sum(dim=-1)
    return consistency_weight * divergence + entropy_weight * entropy


def consistency_gate(radii: Tensor, chosen: Tensor, kind: Gate, scale: float) -> Tensor:
    """w_r: how much certified routing of an input is worth, in [0, 1]. Shape (batch,).

    ``chosen`` are the sigma indices of the noisy copies, (m, batch). Strong takes the radius at the largest of them,
    weak at the smallest, over ``scale``; none is 1.
    """
    match kind:
        case "none":
            return torch.ones_like(radii[:, 0])
        case "strong":
            sigma_index = chosen.amax(dim=0)
        case "weak":
            sigma_index = chosen.amin(dim=0)
        case _:
            raise BadSetting(f"unknown consistency gate {kind!r}; choose one of strong, weak, none")
    if not scale > 0:
        raise BadSetting(f"the radius scale divides radii and must be positive, got {scale}")
    return (radii.gather(1, sigma_index[:, None])[:, 0] / scale).clamp(0, 1)


def router_loss(
    logits: Tensor,
    radii: Tensor,
    balance: Tensor,
    *,
    consistency_weight: float,
    entropy_weight: float,
    gate: Gate,
    scale: float,
    hard: bool = False,
) -> Tensor:
    """E[w_e (soft cross-entropy + w_r consistency)] over a batch: radii and ``balance`` are those of its inputs."""
    if logits.shape[1:] != radii.shape or balance.shape != radii.shape[:1]:
        raise BadModel(
            f"the router's logits {tuple(logits.shape)}, radii {tuple(radii.shape)} and weights {tuple(balance.shape)} "
            "must have shapes (copies, batch, candidates), (batch, candidates) and (batch,): give the router one "
            "answer for each sigma of the labels"
        )
    cross_entropy = soft_cross_entropy(logits, hard_labels(radii) if hard else soft_labels(radii))
    regular = consistency(logits, consistency_weight=consistency_weight, entropy_weight=entropy_weight)
    weight = consistency_gate(radii, logits.argmax(dim=-1), gate, scale)
    return (balance * (cross_entropy + weight * regular)).mean()


def log_softmax(logits: Tensor) -> Tensor:
    """In float32 at least: networks may answer in half precision."""
    return logits.log_softmax(dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))


def mean_of_logs(log_copies: Tensor) -> Tensor:
    """The logarithm of the mean over copies, from logarithms: finite though a probability is 0 in float32 on each."""
    return log_copies.logsumexp(dim=0) - math.log(len(log_copies))
