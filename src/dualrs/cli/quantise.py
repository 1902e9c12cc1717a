"""The command that puts a network into eight bits: quantise."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from dualrs.cli.options import DataOptions, this_command


def quantise(
    network: Annotated[
        str, Argument(help="A lean residual network: zoo:NAME, or weights that dualrs trained.", show_default=False)
    ],
    out: Annotated[Path, Argument(help="Where the weights go, NAME.safetensors.", show_default=False)],
    sigma: Annotated[
        str | None,
        Option(
            help="The sigmas that it shall answer under; by default 0.25,0.5,1.0, for a router the one of its training."
        ),
    ] = None,
    data: Annotated[str, Option(help="Images that steps are chosen on: use training images.")] = "cifar10:train",
    test: Annotated[str, Option(help="Images that the answers of both networks are compared on.")] = "cifar10:test",
    images: Annotated[int, Option(help="How many images of each of the two, evenly spread.")] = 1000,
    seed: Annotated[int, Option(help="Seed of the noise on them.")] = 0,
) -> None:
    """Put a classifier or router into eight bits: on a CPU it then answers nearly four times as fast.

    What comes of it is a network like any other, with answers, accuracy and certificates of its own, which are close
    to those of the float network. It is certified as it is: rounding costs no guarantee.

    Example: `dualrs quantise zoo:cifar10-consistent mine.safetensors`, then `dualrs evaluate mine.safetensors`
    """
    from dualrs.pipeline.networks import Networks
    from dualrs.training.noise import parse_sigmas
    from dualrs.training.quantise import Sampled
    from dualrs.training.quantise import quantise as put

    found = Networks(Path.cwd())(network)
    _, sigma_e = getattr(found, "routes", None) or ((), None)
    sigmas = parse_sigmas(sigma) if sigma else (0.25, 0.5, 1.0) if sigma_e is None else (sigma_e,)
    train, compared = (Sampled(DataOptions(data=name).open(), images, sigmas, seed) for name in (data, test))
    card = put(found, network, train, compared, out, recipe=this_command())
    for score, value in card.scores.items():
        print(f"{score}: {100 * value:.2f} %")
    print(f"wrote {out}, {out.stat().st_size / 1e6:.1f} MB; try it with: dualrs evaluate {out}")
