"""The noise stream: its table, its law, and its addresses.

Statistical tests state the probability with which they would reject the right law. Seeds are fixed, so that a
test which passes today passes tomorrow; each comes with a wrong law which the same test must reject.
"""

import hashlib
import math
from bisect import bisect_right
from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import pytest
import torch
from scipy.special import erfc, ndtr
from scipy.stats import binom, chi2

from dualrs.errors import BadSetting
from dualrs.sampling.noise import FIRST_NOISE, LARGEST_SIGMA, NOISE, NoiseSource, _normal_cdf, _table, check_sigma
from dualrs.sampling.noise import draw_block as draw_addressed
from dualrs.votes import BLOCK, Part, Purpose, Stage, Stream

FALSE_ALARM = 1e-6
SCALE = 2**62

CLASS_HALF = Stream(Stage.CLASS, Part.ESTIMATION, 0.5)


def draw_block(seed, name, stream, block, pixels, *, purpose=Purpose.CERTIFY, level=0, by_name=False):
    """Noise for a grey image of so many pixels in a row."""
    image = np.full((1, 1, pixels), level, dtype=np.uint8)
    return draw_addressed(NoiseSource(purpose, seed, by_name), name, image, stream, block)


# The table


def cell_edges(sigma):
    """z + 1/2 in standard deviations, for each z of the table."""
    table = _table(sigma)
    return (np.arange(len(table.cdf)) - table.largest + 0.5) / (255 * sigma)


@pytest.mark.parametrize("sigma", [0.001, 0.12, 0.25, 0.5, 1.0, LARGEST_SIGMA])
def test_table_is_the_normal_distribution_function_as_far_as_doubles_can_tell(sigma):
    expected = [0.5 * math.erfc(-x / math.sqrt(2)) for x in cell_edges(sigma)]
    np.testing.assert_allclose(_table(sigma).cdf / SCALE, expected, rtol=0, atol=1e-15)


def decimal_cdf(x):
    """Phi(x) for x >= 0 by 1/2 + density * (x + x^3/3 + x^5/(3*5) + ...): positive terms, unlike those of the source.

    The context has 70 digits; pi by Machin's formula.
    """

    def arctan_of_inverse(n):
        total, power, k = Decimal(0), 1 / Decimal(n), 0
        while abs(power) > Decimal("1e-75"):
            total += power / (2 * k + 1) * (-1) ** k
            power /= n * n
            k += 1
        return total

    pi = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))
    total, term, odd = Decimal(0), x, 1
    while term > Decimal("1e-72") * (total + 1):
        total += term
        odd += 2
        term *= x * x / odd
    return Decimal("0.5") + (-x * x / 2).exp() / (2 * pi).sqrt() * total


@pytest.mark.parametrize(("sigma", "step"), [(0.12, 1), (0.5, 41), (1.0, 83), (LARGEST_SIGMA, 997)])
def test_every_entry_of_the_table_is_the_nearest_integer(sigma, step):
    table = _table(sigma)
    with localcontext() as context:
        context.prec = 70
        for z in range(0, table.largest, step):
            exact = decimal_cdf((Decimal(z) + Decimal("0.5")) / (255 * Decimal(sigma))) * SCALE
            above, below = int(table.cdf[table.largest + z]), int(table.cdf[table.largest - 1 - z])
            assert abs(above - exact) <= Decimal("0.500001")
            assert above + below == SCALE  # the law is symmetric to the last bit


def test_table_agrees_with_mpmath():
    mpmath = pytest.importorskip("mpmath")
    table = _table(0.25)
    with mpmath.workprec(300):
        for i in range(0, len(table.cdf), 7):
            x = (mpmath.mpf(i - table.largest) + 0.5) / (255 * mpmath.mpf(0.25))
            assert abs(int(table.cdf[i]) - mpmath.ncdf(x) * SCALE) <= 0.500001


def test_half_and_both_ends_of_the_distribution_function_are_exact():
    assert _normal_cdf(0, 1, 62) == SCALE // 2
    assert _normal_cdf(10, 1, 62) == SCALE
    # 0.9750021048517795658634157... is in every collection of tables
    assert abs(_normal_cdf(196, 100, 80) - Decimal("0.97500210485177956586341573094") * 2**80) < 2**6


@pytest.mark.parametrize("sigma", [0.12, 1.0])
def test_sixteen_bits_decide_only_where_all_longer_numbers_agree(sigma):
    table = _table(sigma)
    first = np.arange(1 << 16, dtype=np.int64) << 46
    smallest = np.searchsorted(table.cdf, first, side="right") - table.largest
    largest = np.searchsorted(table.cdf, first + (1 << 46) - 1, side="right") - table.largest
    decided = table.guide != np.iinfo(np.int16).min
    np.testing.assert_array_equal(decided, smallest == largest)
    np.testing.assert_array_equal(table.guide[decided], smallest[decided])
    # the ends must stay open: behind them lie the tails
    assert not decided[0]
    assert not decided[-1]


@pytest.mark.parametrize("sigma", [0.05, 0.5, 1.0, LARGEST_SIGMA])
def test_one_comparison_decides_only_where_the_bits_leave_two_values(sigma):
    table = _table(sigma)
    width = SCALE >> 16
    cells = np.arange(1 << 16)
    inside = np.searchsorted(table.cdf, (cells + 1) * width - 1, side="right") - np.searchsorted(
        table.cdf, cells * width, side="right"
    )  # steps of the distribution function that a cell has above its first number
    two = inside == 1
    assert two.any()
    step = cells[two] * width + table.step[table.first[two]].astype(np.int64)
    np.testing.assert_array_equal(step, table.cdf[table.first[two]])
    assert (step < (cells[two] + 1) * width).all()
    undecided = inside > 0
    np.testing.assert_array_equal(table.several[table.first[undecided]], inside[undecided] > 1)


def test_extreme_uniform_numbers_give_the_extreme_values():
    table = _table(0.5)
    ends = np.searchsorted(table.cdf, np.array([0, SCALE - 1]), side="right") - table.largest
    assert abs(int(ends[0]) + table.largest) <= 1
    assert abs(int(ends[1]) - table.largest) <= 1
    assert table.largest >= 9 * 255 * 0.5


@pytest.mark.parametrize("sigma", [1e-3, 1e-5, 1e-9, 5e-324])
def test_sigma_far_below_a_grey_level_gives_its_noise_without_delay(sigma):
    # At 1e-9 a pixel changes with a probability that no table of 62 bits can hold: the noise is all zeros.
    noise = draw_block(0, "0", Stream(Stage.CLASS, Part.ESTIMATION, sigma), 0, 1000)
    changed = 2 * ndtr(-0.5 / 255 / sigma)
    count = int((noise != 0).sum())
    assert binom.sf(count - 1, noise.size, changed) > FALSE_ALARM
    assert binom.cdf(count, noise.size, changed) > FALSE_ALARM


@pytest.mark.parametrize(
    "sigma", [0, -0.5, float("nan"), float("inf"), 8.0001, 127.5], ids=lambda s: f"sigma of {s} is refused"
)
def test_sigma_without_noise(sigma):
    with pytest.raises(BadSetting, match="must be positive and at most 8"):
        check_sigma(sigma)


def test_sigma_is_named_in_the_refusal_and_comes_back_as_a_float():
    with pytest.raises(BadSetting, match="sigma_e must be"):
        check_sigma(-1, "sigma_e")
    assert isinstance(check_sigma(1), float)
    assert isinstance(check_sigma(np.float32(0.5)), float)


# The law


@cache
def sample(sigma, seed=1):
    """A million pixels of noise."""
    return np.concatenate(
        [draw_block(seed, "law", Stream(Stage.CLASS, Part.ESTIMATION, sigma), b, 1000).ravel() for b in range(10)]
    )


def p_value(noise, sigma):
    """Chi-square goodness of fit of integers to a rounded Gaussian; tails are pooled where few are expected."""
    reach = int(6 * 255 * sigma)
    values = np.arange(-reach, reach + 1)
    mass = ndtr((values + 0.5) / (255 * sigma)) - ndtr((values - 0.5) / (255 * sigma))
    kept = values[mass * len(noise) >= 25]
    low, high = kept[0], kept[-1]
    edges = np.concatenate([[-np.inf], np.arange(low, high + 1) + 0.5, [np.inf]])  # the first cell holds the low tail
    expected = np.diff(ndtr(edges / (255 * sigma))) * len(noise)
    observed = np.bincount(np.clip(noise.astype(int), low, high + 1) - low, minlength=len(expected))
    return chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1)


def alarms(noise, sigma):
    """Which tests reject the rounded Gaussian; each does so wrongly with probability at most `FALSE_ALARM`."""
    variance = (255 * sigma) ** 2 + 1 / 12
    found = {
        "cells": p_value(noise, sigma),
        "mean": erfc(abs(noise.mean(dtype=np.float64)) / math.sqrt(2 * variance / len(noise))),
        "variance": erfc(abs(noise.var(dtype=np.float64) / variance - 1) / math.sqrt(4 / len(noise))),
    }
    return [name for name, p in found.items() if p < FALSE_ALARM]


SIGMAS = [0.12, 0.5, 1.0]


@pytest.mark.parametrize("sigma", SIGMAS)
def test_noise_follows_the_rounded_gaussian(sigma):
    assert alarms(sample(sigma), sigma) == []


@pytest.mark.parametrize(
    ("wrong", "alarm"),
    [
        pytest.param(np.trunc, "cells", id="rounding towards zero"),
        pytest.param(np.floor, "mean", id="rounding down"),
        pytest.param(lambda z: np.rint(1.01 * z), "variance", id="a sigma one percent too large"),
        pytest.param(lambda z: np.rint(np.clip(z, -200, 200)), "cells", id="tails cut off"),
        pytest.param(lambda z: np.where(np.rint(z) == 17, 18, np.rint(z)), "cells", id="a value that never comes"),
    ],
)
def test_wrong_law_is_rejected_by_the_same_tests(wrong, alarm):
    gaussian = 0.25 * 255 * np.random.default_rng(0).standard_normal(1_000_000)
    assert alarms(np.rint(gaussian), 0.25) == []
    assert alarm in alarms(wrong(gaussian), 0.25)


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("deviations", [3.0, 4.0, 4.5])
@pytest.mark.parametrize("side", [-1, 1], ids=["low", "high"])
def test_tails_have_their_weight(sigma, deviations, side):
    threshold = math.ceil(deviations * 255 * sigma)
    weight = ndtr(-(threshold - 0.5) / (255 * sigma))
    noise = sample(sigma)
    count = int((side * noise >= threshold).sum())
    assert binom.sf(count - 1, noise.size, weight) > FALSE_ALARM
    assert binom.cdf(count, noise.size, weight) > FALSE_ALARM
    assert count > 0 or deviations > 4


def test_pixels_and_copies_of_a_block_are_uncorrelated():
    # Six standard errors for every lag; a right stream fails with probability below 1e-7 in all.
    noise = draw_block(3, "lags", CLASS_HALF, 0, 3072).astype(np.float64) / (0.5 * 255)
    flat = noise.ravel()
    for lag in (1, 2, 3, 4, 8, 16, 32, 64, 3072, 4 * 3072):
        products = flat[:-lag] * flat[lag:]
        assert abs(products.mean()) < 6 / math.sqrt(len(products))


# The address


def digest(block):
    return hashlib.blake2b(block.astype("<i2").tobytes(), digest_size=16).hexdigest()


def test_name_of_the_stream_is_that_of_the_golden_values():
    # Whoever changes the values below has made another stream, and must give it another name.
    assert NOISE == "integer-gaussian philox-4x64 2"
    assert FIRST_NOISE == "integer-gaussian philox-4x64 1"


def test_first_numbers_of_a_stream_never_change():
    first = draw_block(0, "0", CLASS_HALF, 0, 12)[0]
    assert first.tolist() == [0, 44, 73, 298, -33, -34, -93, -117, 112, 41, -127, 140]
    oldest = draw_block(0, "0", CLASS_HALF, 0, 12, by_name=True)[0]
    assert oldest.tolist() == [-129, 217, 116, 303, -118, -49, -17, -69, 45, 28, 94, -63]


@pytest.mark.parametrize(
    ("address", "changes", "golden"),
    [
        pytest.param(
            (0, "0", CLASS_HALF, 0, 12), {}, "1d5936f038c9886d3c68c1d2c08c7983", id="seed 0, input 0, block 0"
        ),
        pytest.param((0, "0", CLASS_HALF, 99, 12), {}, "da2c1d2cd6ab7d6f1cef33f014c24a80", id="block 99"),
        pytest.param(
            (2**127 + 1, "0", CLASS_HALF, 0, 12), {}, "4c3a118ff1b6f728e4dedafd9a927840", id="a seed of 128 bits"
        ),
        pytest.param((-7, "0", CLASS_HALF, 0, 12), {}, "cd59e376bf874416f2953560201327ff", id="a negative seed"),
        pytest.param(
            (0, "größe/n02\t7", CLASS_HALF, 0, 12), {}, "846dd9f61ee227656d03b58db6cd6d10", id="an id of any characters"
        ),
        pytest.param(
            (0, "0", CLASS_HALF, 0, 12), {"purpose": Purpose.LABEL}, "e743927f1fbce41c3bc6f60e9e9f4bde", id="labels"
        ),
        pytest.param((0, "0", CLASS_HALF, 0, 12), {"level": 1}, "95c3dea2c39c1e9c11005817e20dc02a", id="other pixels"),
        pytest.param(
            (0, "0", Stream(Stage.ROUTER, Part.SELECTION, 1.0), 7, 3072),
            {},
            "7291fea76b89e50bf16c759f4d6f156b",
            id="an image of CIFAR-10",
        ),
    ],
)
def test_block_of_a_fixed_address_never_changes(address, changes, golden):
    assert digest(draw_block(*address, **changes)) == golden


@pytest.mark.parametrize(
    ("address", "golden"),
    [
        pytest.param((0, "0", CLASS_HALF, 0, 12), "79f333335e9453ad346fa3390439c9e6", id="seed 0, input 0, block 0"),
        pytest.param((0, "0", CLASS_HALF, 99, 12), "22e9f7e2e688663e5971b534726a5d35", id="block 99"),
        pytest.param((2**40 + 1, "0", CLASS_HALF, 0, 12), "ff5870752af5eda40f081bce445b02e0", id="a seed of 41 bits"),
        pytest.param((-7, "0", CLASS_HALF, 0, 12), "0d700b746531d00f99820dc7b92b772b", id="a negative seed"),
        pytest.param(
            (0, "größe/n02\t7", CLASS_HALF, 0, 12), "1e560dc79f201ce5d34f59a2a3d3e13a", id="an id of any characters"
        ),
        pytest.param(
            (0, "0", Stream(Stage.ROUTER, Part.ESTIMATION, 0.5), 0, 12),
            "1ae3c61dc992a62281af93203dfd1901",
            id="the router",
        ),
        pytest.param(
            (0, "0", Stream(Stage.CLASS, Part.SELECTION, 0.5), 0, 12),
            "d3bfbb0e1bb5d00d4262073750b219be",
            id="selection",
        ),
        pytest.param(
            (0, "0", Stream(Stage.CLASS, Part.ESTIMATION, 0.1), 0, 12),
            "b13c4c58cd2295317dba93df698896ad",
            id="a sigma without a short binary",
        ),
        pytest.param(
            (0, "0", Stream(Stage.CLASS, Part.ESTIMATION, 1.0), 7, 3072),
            "76a84f00112bcdb3a4f76027563747c8",
            id="an image of CIFAR-10",
        ),
    ],
)
def test_block_of_the_first_noise_never_changes(address, golden):
    assert digest(draw_block(*address, by_name=True)) == golden


def philox_words(key, block):
    """Philox-4x64-10 as published (Salmon et al. 2011), counting as numpy does: one step before the first use."""
    mask, position = 2**64 - 1, 0
    while True:
        position += 1
        c0, c1, c2, c3 = position, 0, 0, block
        k0, k1 = key
        for _ in range(10):
            p0, p1 = 0xD2E7470EE14C6C93 * c0, 0xCA5A826395121157 * c2
            c0, c1, c2, c3 = (p1 >> 64) ^ c1 ^ k0, p1 & mask, (p0 >> 64) ^ c3 ^ k1, p0 & mask
            k0, k1 = (k0 + 0x9E3779B97F4A7C15) & mask, (k1 + 0xBB67AE8584CAA73B) & mask
        yield from (c0, c1, c2, c3)


def test_stream_can_be_computed_again_from_its_description_alone():
    """What a reader in another language has to do: hash the address, run Philox, invert the distribution function."""
    seed, name, block, pixels = 12, "image 3", 5, 3
    stream = Stream(Stage.ROUTER, Part.SELECTION, 0.25)
    content = hashlib.blake2b(b"(1, 1, 3)" + bytes([200] * 3), digest_size=16).hexdigest()
    address = f"assign\0{content}\0{seed}\0router\0selection\0{stream.sigma.hex()}\0{name}"
    key = hashlib.blake2b(address.encode(), digest_size=16).digest()
    words = philox_words((int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")), block)
    cdf = _table(stream.sigma).cdf.tolist()
    largest = _table(stream.sigma).largest

    size = BLOCK * pixels
    tops = [word >> shift & 0xFFFF for word in (next(words) for _ in range(size // 4)) for shift in (0, 16, 32, 48)]
    noise = []
    for top in tops:  # 16 bits, and 46 more from the words that follow where the 16 leave a choice
        low, high = (bisect_right(cdf, (top << 46) + more) - largest for more in (0, 2**46 - 1))
        noise.append(low if low == high else bisect_right(cdf, (top << 46) + (next(words) >> 18)) - largest)
    drawn = draw_block(seed, name, stream, block, pixels, purpose=Purpose.ASSIGN, level=200)
    assert drawn.ravel().tolist() == noise


def test_block_has_one_row_of_pixels_per_vote():
    block = draw_block(0, "0", CLASS_HALF, 0, 7)
    assert block.shape == (BLOCK, 7)
    assert block.dtype == np.int16


BASE = (5, "input", Stream(Stage.CLASS, Part.ESTIMATION, 0.5), 3)


@pytest.mark.parametrize("pixels", [1, 3, 7, 64, 3072])  # a block of words that ends within a step of the counter too
@pytest.mark.parametrize("sigma", [0.12, 1.0])
def test_first_copies_of_a_block_are_those_of_the_whole_block(pixels, sigma):
    """They take fewer words for their guides; the bits that decide come from where they always did."""
    source, image = NoiseSource(Purpose.LABEL, 5), np.full((1, 1, pixels), 9, dtype=np.uint8)
    stream = Stream(Stage.CLASS, Part.ESTIMATION, sigma)
    whole = draw_addressed(source, "part", image, stream, 2)
    for copies in (1, 2, 32, 99, BLOCK):
        np.testing.assert_array_equal(draw_addressed(source, "part", image, stream, 2, copies), whole[:copies])


@pytest.mark.parametrize(
    "other",
    [
        pytest.param((6, *BASE[1:]), id="another seed"),
        pytest.param((5 + 2**32, *BASE[1:]), id="a seed that differs beyond 32 bits"),
        pytest.param((5 + 2**64, *BASE[1:]), id="a seed that differs beyond 64 bits"),
        pytest.param((-5, *BASE[1:]), id="the negative seed"),
        pytest.param((5, "Input", *BASE[2:]), id="another input"),
        pytest.param((5, "input", Stream(Stage.ROUTER, Part.ESTIMATION, 0.5), 3), id="the other stage"),
        pytest.param((5, "input", Stream(Stage.CLASS, Part.SELECTION, 0.5), 3), id="the other part"),
        pytest.param((5, "input", Stream(Stage.CLASS, Part.ESTIMATION, 1.0), 3), id="another sigma"),
        pytest.param(
            (5, "input", Stream(Stage.CLASS, Part.ESTIMATION, math.nextafter(0.5, 1)), 3), id="a sigma next to it"
        ),
        pytest.param((*BASE[:3], 4), id="the next block"),
        pytest.param((*BASE[:3], 3 + 2**32), id="a block that differs beyond 32 bits"),
    ],
)
def test_another_address_has_other_and_uncorrelated_noise(other):
    # Six standard errors: unrelated noise fails with probability below 1e-8.
    ours, theirs = (
        draw_block(*address, 3072).astype(np.float64) / (255 * address[2].sigma) for address in (BASE, other)
    )
    assert not np.array_equal(ours, theirs)
    for copies in (theirs, theirs[::-1], np.roll(theirs, 1, axis=0), np.roll(theirs, 1, axis=1)):
        assert abs((ours * copies).mean()) < 6 / math.sqrt(ours.size)


@pytest.mark.parametrize("change", [{"level": 1}, *({"purpose": p} for p in Purpose if p is not Purpose.CERTIFY)])
def test_other_pixels_and_other_purposes_have_other_and_uncorrelated_noise(change):
    # Six standard errors: unrelated noise fails with probability below 1e-8.
    ours, theirs = (draw_block(*BASE, 3072, **c).astype(np.float64) / 127.5 for c in ({}, change))
    for copies in (theirs, theirs[::-1], np.roll(theirs, 1, axis=0), np.roll(theirs, 1, axis=1)):
        assert abs((ours * copies).mean()) < 6 / math.sqrt(ours.size)


def test_noise_of_one_changed_pixel_is_other_noise():
    image = np.zeros((3, 8, 8), dtype=np.uint8)
    changed = image.copy()
    changed[1, 2, 3] = 1
    source = NoiseSource(Purpose.CERTIFY, 0)
    assert not np.array_equal(*(draw_addressed(source, "7", i, CLASS_HALF, 0) for i in (image, changed)))


@pytest.mark.parametrize("seed", [True, False, 1.0, "1", None])
def test_seed_that_is_no_whole_number_is_refused(seed):
    with pytest.raises(BadSetting, match="the seed must be a whole number"):
        NoiseSource(Purpose.CERTIFY, seed)


def test_parts_of_an_address_do_not_run_into_each_other():
    addresses = [(1, "1"), (11, ""), (1, "1\0"), (1, "\x001"), (1, "11"), (11, "1")]
    digests = {digest(draw_block(seed, name, CLASS_HALF, 0, 10)) for seed, name in addresses}
    assert len(digests) == len(addresses)


def test_noise_depends_on_nothing_but_its_address():
    first = draw_block(*BASE, 30)
    torch.manual_seed(123)
    np.random.seed(123)  # noqa: NPY002
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    draw_block(*BASE[:3], 4, 30)
    np.testing.assert_array_equal(draw_block(*BASE, 30), first)
    # and it leaves the generators of the user alone
    assert torch.equal(torch.get_rng_state(), torch_state)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002


@pytest.mark.parametrize("block", [0, 1, 2**40])
def test_blocks_cannot_meet_in_the_counter(block, monkeypatch):
    """A block begins at (0, 0, 0, block) and ends with the same top word: the next one begins beyond its reach."""
    made = []
    philox = np.random.Philox

    def remember(*args, **kwargs):
        made.append(philox(*args, **kwargs))
        assert made[-1].state["state"]["counter"].tolist() == [0, 0, 0, block]
        return made[-1]

    monkeypatch.setattr(np.random, "Philox", remember)
    draw_block(0, "0", CLASS_HALF, block, 3 * 64 * 64)
    (generator,) = made
    low, *middle, top = generator.state["state"]["counter"].tolist()
    assert top == block
    assert middle == [0, 0]
    assert 0 < low < 2**32  # room for images 2^40 times as large


def test_no_stretch_of_one_block_occurs_in_another():
    windows = [
        {w.tobytes() for w in np.lib.stride_tricks.sliding_window_view(draw_block(*BASE[:3], b, 20).ravel(), 12)}
        for b in range(20)
    ]
    assert len(set().union(*windows)) == sum(map(len, windows))
