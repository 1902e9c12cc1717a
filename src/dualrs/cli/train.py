"""The commands that train networks: train denoiser, train classifier, train router."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Option, Typer

from dualrs.cli.courses import (
    ARGS_OF_CLASSIFIER,
    ARGS_OF_DENOISER,
    METHOD_ARGS,
    ClassifierOptions,
    Course,
    Data,
    Denoiser,
    Network,
    NetworkArgs,
    Out,
    Shape,
    Test,
    data_option,
    json_object,
    objective_option,
    schedule_option,
    shown_training,
)
from dualrs.cli.options import recipe_file
from dualrs.cli.sets import Only, spread_out

train_app = Typer(no_args_is_help=True, help="Train networks: a denoiser, a classifier, a router.")


@train_app.command("denoiser")
@spread_out
def denoiser(
    out: Out,
    data: Data = "cifar10:train",
    test: Test = "cifar10:test",
    sigma: Annotated[str, Option(help="Sigmas: LOW:HIGH, or some, as 0.25,0.5,1.0.")] = "0.05:1.5",
    network: Annotated[str, schedule_option(help="lean-unet, or unet2d (of diffusers).")] = "lean-unet",
    network_args: Annotated[
        str, schedule_option(help=f"Arguments of the network as JSON, such as '{ARGS_OF_DENOISER}'.")
    ] = "{}",
    *,
    shape: Shape,
    course: Annotated[
        Course, Only("batch_size", "rate", "weight_decay", "seed", "device", "dtype", "compile", epochs=12)
    ],
) -> None:
    """Train a denoiser that is told the sigma, over a range of them.

    Stop it at any time; run the same command again to resume.
    """
    from dualrs.models.card import Architecture
    from dualrs.training.base import train_denoiser
    from dualrs.training.images import TrainingImages
    from dualrs.training.noise import parse_levels

    arguments = json_object(network_args, "network_args", ARGS_OF_DENOISER)
    images = TrainingImages(replace(shape, data=data).open())
    levels = parse_levels(sigma, len(images))
    measured = replace(shape, data=test).open()
    with shown_training(out, images, measured, levels, course.schedule, course) as training:
        train_denoiser(training, Architecture(network=network, arguments=arguments))


@train_app.command("classifier")
@spread_out
def classifier(
    out: Out,
    recipe: Annotated[
        Path | None,
        Option(
            parser=recipe_file,
            metavar="RECIPE",
            help="A recipe with the settings below: a file (TOML), or the name of one that comes with dualrs, as "
            "methods/smoothadv. Options given by hand win over it.",
        ),
    ] = None,
    data: Annotated[
        str | None,
        data_option(help="Training images: cifar10:train (default), folder:PATH, hub:NAME:SPLIT or module:attribute."),
    ] = None,
    test: Annotated[str | None, data_option(help="Images to measure the result on; cifar10:test by default.")] = None,
    sigma_from: Annotated[
        Path | None,
        Option(help="In place of --sigma: the ledger that `dualrs assign` wrote. Its inputs are trained on."),
    ] = None,
    seed: Annotated[
        int | None, schedule_option(help="Seed of the weights, the order and the noise; 0 by default.")
    ] = None,
    *,
    shape: Shape,
    options: ClassifierOptions,
) -> None:
    """Train a classifier on clean, on noisy or (with --denoiser) on denoised images, by any of the field's methods.

    Stop it at any time; run the same command again to resume.

    Fine-tune: `dualrs train classifier tuned.safetensors --denoiser zoo:cifar10-denoiser --from zoo:cifar10-classifier
    --sigma-from assigned.ledger`

    An expert: `dualrs train classifier expert.safetensors --recipe methods/small --method macer --sigma 0.5`
    """
    from dualrs.config import load_classifier
    from dualrs.data.classes import numbered_as
    from dualrs.pipeline.build import build_data, build_loss, build_method, build_schedule, build_trainee
    from dualrs.training.assignment import Assignment, read_assignment
    from dualrs.training.base import train_classifier
    from dualrs.training.images import TrainingImages
    from dualrs.training.noise import parse_levels

    loaded = load_classifier(
        recipe,
        {
            "data": replace(shape, data=data).section(),
            "test": replace(shape, data=test).section(),
            "seed": seed,
            "classifier": options.section(),
        },
    )
    settings = loaded.classifier
    trainee = build_trainee(settings, loaded.seed)
    dataset = build_data(loaded.data)
    if sigma_from is None:
        images = TrainingImages(numbered_as(dataset, trainee.classes))
        taught = Assignment(images, parse_levels(settings.sigma, len(images)))
    else:
        taught = read_assignment(sigma_from, dataset, classes=trainee.classes)
    method, own = build_method(settings, taught.levels), build_loss(settings.loss)
    where = replace(options, device=settings.device, dtype=settings.dtype, compile=settings.compile)
    schedule, measured = build_schedule(settings, loaded.seed), build_data(loaded.test)
    with shown_training(out, taught.images, measured, taught.levels, schedule, where) as training:
        train_classifier(training, trainee, own, method)


@train_app.command("router")
@spread_out
def router(
    out: Out,
    labels: Annotated[Path, Option(help="The ledger that `dualrs label` wrote.", show_default=False)],
    denoiser: Denoiser = None,
    data: Data = "cifar10:train",
    sigma_e: Annotated[float, objective_option(help="Sigma of the router's own noise.")] = 1.0,
    method: Annotated[
        str,
        objective_option(
            help="consistency is the paper's own, with the settings below; in its place: gaussian, smoothadv, macer, "
            "smoothmix or cat-rs, for the same labels."
        ),
    ] = "consistency",
    method_args: Annotated[str, objective_option(help=METHOD_ARGS)] = "{}",
    consistency_weight: Annotated[float, objective_option(help="Lambda, weight of the KL term.")] = 40.0,
    entropy_weight: Annotated[float, objective_option(help="Eta, weight of the entropy.")] = 0.5,
    noise_copies: Annotated[int, objective_option(help="Noisy copies of each image in the loss.")] = 2,
    gate: Annotated[str, objective_option(help="strong, weak or none: w_r.")] = "strong",
    balanced: Annotated[
        bool | None,
        objective_option(
            help="Weigh every best sigma alike (w_e = 1/q); by default for a classifier, but not for experts."
        ),
    ] = None,
    hard: Annotated[bool, objective_option("--hard", help="Hard labels, for comparison.")] = False,
    loss: Annotated[
        str | None,
        objective_option(
            help="Your own in place of the paper's: net.py:loss, (logits of shape (copies, images, sigmas), radii of "
            "shape (images, sigmas)) -> one loss per image."
        ),
    ] = None,
    network: Network = "lean-resnet",
    network_args: NetworkArgs = "{}",
    *,
    shape: Shape,
    course: Annotated[
        Course,
        Only(
            "weight_decay", "optimizer", "drop_at", "seed", "device", "dtype", "compile",
            epochs=90, batch_size=256, rate=0.01, halve_every=30,
        ),
    ],
) -> None:  # fmt: skip
    """Train a router (the paper's variance estimator) on the labels that `dualrs label` made.

    Defaults are the paper's for CIFAR-10. Every 20th input with a positive radius is held out to measure the result.
    """
    from dualrs.models.reference import Reference
    from dualrs.pipeline.build import build_loss, build_router_method
    from dualrs.pipeline.networks import Networks
    from dualrs.training.base import train_router
    from dualrs.training.lessons import read_lessons
    from dualrs.training.noise import OneOf
    from dualrs.training.router import RouterObjective

    arguments = json_object(network_args, "network_args", ARGS_OF_CLASSIFIER)
    trainee = Networks().fresh(Reference.parse(network).behind(denoiser), arguments, course.seed)
    settings = json_object(method_args, "method_args", '{"copies": 4}')
    lessons = read_lessons(labels, replace(shape, data=data).open())
    objective = RouterObjective(
        sigma_e, consistency_weight, entropy_weight, noise_copies, gate,  # type: ignore[arg-type]
        not lessons.experts if balanced is None else balanced, hard, build_loss(loss),
        build_router_method(method, settings, sigma_e, course.epochs),
    )  # fmt: skip
    levels = OneOf((sigma_e,))
    with shown_training(out, lessons.images, lessons.held_out, levels, course.schedule, course) as training:
        train_router(training, trainee, lessons.radii, lessons.sigmas, objective)
