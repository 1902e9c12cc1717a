"""The commands that draw from ledgers: report makes a page, figure a picture in paper form."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from dualrs.cli.ledgers import OtherRule
from dualrs.cli.options import Images, NetworkOptions, method_names, positions, recipe_file, this_command
from dualrs.cli.sets import Only, spread_out
from dualrs.errors import BadSetting

if TYPE_CHECKING:
    from dualrs.config import DataSection
    from dualrs.report.given import Given
    from dualrs.report.page import Pictures, Run
    from dualrs.storage import Ledger, Results
    from dualrs.storage.verify import Report
    from dualrs.theory.bounds import Floats

Files = Annotated[
    list[str],
    Argument(
        help="Ledgers of `dualrs certify`, attacks on them, and result tables of other projects, each as FILE or "
        "NAME=FILE.",
        show_default=False,
    ),
]
OptionalFiles = Annotated[
    list[str] | None,
    Argument(
        metavar="[FILES]...",
        help="Ledgers, each as FILE or NAME=FILE; for accuracy also attacks, and result tables of other projects as "
        "`dualrs compare` takes them.",
        show_default=False,
    ),
]

_FIGURES = ("accuracy", "best-sigma", "radius-sigma", "regret", "slack", "p-a", "penalty")
_FIVE = 5  # inputs of Figure 1


@spread_out
def report(
    files: Files,
    output: Annotated[Path, Option("--output", "-o", help="Where to write the page.")] = Path("report.html"),
    recipe: Annotated[
        Path | None,
        Option(
            parser=recipe_file, metavar="RECIPE", help="For copies of images: the recipe of the run, with its networks."
        ),
    ] = None,
    *,
    networks: Annotated[NetworkOptions, Only("model")],
    data: Images,
) -> None:
    """Make a page of ledgers: accuracy of every method, curves, diagnostics, and each input with its why.

    The page is one file that opens from disk and needs no network. Methods are those that the votes allow: `dualrs
    certify --all-votes` allows all of them. Images are those of the dataset that the ledger names, where it is at
    hand; otherwise give it with --data. A result table stands among the methods of the first ledger, whose inputs it
    has to be about. A file of `dualrs attack` adds what was not broken, and to each why the image that was found.
    --recipe or --model gives the networks of one ledger: then a why shows noisy copies that voted and what the denoiser
    made of them, for up to 100 inputs.
    """
    from dualrs.files import write_whole
    from dualrs.progress import PassingBar

    with PassingBar(output.name) as bar:
        page = page_of(files, data.given(), this_command(), bar.update, recipe=recipe, bundle=networks.model)
    output.parent.mkdir(parents=True, exist_ok=True)
    write_whole(output, page)
    print(f"wrote {output}, {len(page) / 1e6:.1f} MB")


def page_of(
    files: Sequence[str],
    given: "DataSection | None",
    command: str,
    update: Callable[[str, int, int], None] = lambda what, done, total: None,
    *,
    recipe: Path | None = None,
    bundle: Path | None = None,
) -> bytes:
    """The page of some files, with the images of the data given, or of those that the ledgers name.

    ``recipe`` or ``bundle`` has the networks of the run, for copies of its images.
    """
    from dualrs.report.attacked import Campaigns
    from dualrs.report.page import read_run, write_page
    from dualrs.version import __version__

    with ExitStack() as stack:
        opened, tables = _open(files, stack)
        if not opened:
            raise BadSetting("a page is made of votes, and there is no ledger among the files; give one")
        others, attacks = Campaigns.among([table.path for table in tables])
        reported = _named([table for table in tables if table.path in others])
        runs = [
            read_run(ledger, name, update, {} if place else reported, attacks)
            for place, (name, ledger) in enumerate(opened.items())
        ]
        attacks.demand_all_used()
        if (recipe or bundle) and len(runs) > 1:
            raise BadSetting("--recipe and --model are the networks of one run; give one ledger")
        pictures = [_pictures(run, given, recipe, bundle, update) for run in runs]
    return write_page(runs, pictures, command=command, version=__version__).encode()


def figure(
    name: Annotated[
        str, Argument(help="accuracy, best-sigma, radius-sigma, regret, slack, p-a or penalty.", show_default=False)
    ],
    files: OptionalFiles = None,
    output: Annotated[
        Path | None, Option("--output", "-o", help="A .png, .svg or .pdf file; NAME.png by default.")
    ] = None,
    methods: Annotated[
        str | None,
        Option(
            help="For accuracy: which methods, as sigma-0.5,cascade-0.4,fusion, or LEDGER/METHOD for one of several. "
            "By default all of one ledger, and the own rule of each of several."
        ),
    ] = None,
    rule: OtherRule = None,
    inputs: Annotated[
        str | None,
        Option(
            help="For radius-sigma: ids of inputs, separated by commas; five by default. For accuracy: START:STOP:STEP "
            "of their positions in the dataset; all by default."
        ),
    ] = None,
    title: Annotated[str, Option(help="A title above the diagram.")] = "",
) -> None:
    """Draw a figure of the paper from one ledger, or a curve for each of several.

    accuracy: certified accuracy against radius. best-sigma, radius-sigma: which sigma gives the largest radius, and
    the radius of some inputs against sigma (Figure 1). regret: ECDF of the radius lost to the choice of sigma. slack:
    ECDF of the radius of the routing less that of the class, under rule paper or --rule. p-a: ECDF of the votes for the
    true class. penalty: what the router's share of alpha costs; needs no ledger.

    best-sigma, radius-sigma and regret need `dualrs certify --all-votes`; the former two read ledgers of `dualrs label`
    too.
    """
    if name not in _FIGURES:
        raise BadSetting(f"there is no figure {name!r}; choose among {', '.join(_FIGURES)}")
    given = {"methods": methods, "rule": rule, "inputs": inputs}
    takes = {"accuracy": ("methods", "inputs"), "slack": ("rule",), "radius-sigma": ("inputs",)}.get(name, ())
    if odd := [f"--{option}" for option, value in given.items() if value is not None and option not in takes]:
        raise BadSetting(f"figure {name} takes no {' and no '.join(odd)}; leave it out")
    path = output or Path(f"{name}.png")
    if name == "penalty" and files:
        raise BadSetting("figure penalty comes from the formulas alone; leave out the ledgers")
    if name != "penalty" and not files:
        raise BadSetting(f"say of which ledgers to draw {name}: dualrs figure {name} FILE...")
    with ExitStack() as stack:
        opened, tables = _open(files or [], stack)
        if tables and name != "accuracy":
            raise BadSetting(f"figure {name} is drawn from votes, and {tables[0].path} is a table without")
        match name:
            case "accuracy":
                _accuracy(opened, path, title, methods, tables, positions(inputs))
            case "radius-sigma":
                _radius_sigma(opened, path, title, inputs)
            case "penalty":
                from dualrs.report.figures import draw_penalty

                draw_penalty(path, title)
            case _:
                _measured(name, opened, path, title, rule)
    print(f"drew {path}")


def _accuracy(
    opened: "dict[str, Ledger]",
    path: Path,
    title: str,
    names: str | None,
    tables: "Sequence[Given]",
    inputs: range | None,
) -> None:
    from dualrs.cli.tables import print_notes
    from dualrs.report.attacked import Campaigns
    from dualrs.report.compare import gather, of_ledger
    from dualrs.report.figures import draw_accuracy
    from dualrs.report.methods import methods, own_method

    if names and not opened:
        raise BadSetting("there is no ledger among the files, and only a ledger has methods to choose from")
    found: dict[str, Results] = {}
    fixed: list[str] = []
    chosen: list[str] | None
    for label, ledger in opened.items():
        if names:
            chosen = of_ledger(label, method_names(names), list(opened))
        else:
            chosen = None if len(opened) == 1 else [own_method(ledger.header)]
        for method in methods(ledger, chosen).values():
            curve = method.title if len(opened) == 1 else f"{label}, {method.name}" if names else label
            if not method.guaranteed and "guarantee" not in curve:
                curve += ", no guarantee"
            found[curve] = method.at(inputs).results
            fixed += [curve] * (method.sigma is not None)
    others, attacks = Campaigns.among([table.path for table in tables])
    if inputs is not None and others:
        raise BadSetting(f"--inputs chooses among the inputs of ledgers, and {others[0]} is a table; leave one out")
    for ledger in opened.values():
        found |= {method.title: method.results for method in attacks.on(ledger, inputs).values()}
    attacks.demand_all_used()
    # Tables of one set are about the same inputs; others need not be.
    together: dict[str | int, list[Given]] = {}
    for place, table in enumerate(table for table in tables if table.path in others):
        together.setdefault(table.name or ("" if table.sigma is not None else place), []).append(table)
    for some in together.values():
        reported = gather(some)
        if twice := found.keys() & reported.methods:
            raise BadSetting(f"two curves are called {min(twice)}; give the files names, as NAME=FILE")
        found |= {label: method.results for label, method in reported.methods.items()}
        fixed += [label for label, method in reported.methods.items() if method.sigma is not None]
        print_notes(reported.notes)
    # Fixed sigmas are what other methods are measured by.
    draw_accuracy(found, path, title, behind=fixed if len(fixed) < len(found) else ())


def _radius_sigma(opened: "dict[str, Ledger]", path: Path, title: str, inputs: str | None) -> None:
    from dualrs.report.diagnostics import fixed_radii
    from dualrs.report.figures import draw_radius_sigma

    if len(opened) > 1:
        raise BadSetting("figure radius-sigma is about the inputs of one ledger; give one")
    fixed = fixed_radii(next(iter(opened.values())))
    certified = [i for i, radii in zip(fixed.ids, fixed.radii, strict=True) if radii.max() > 0]
    ids = inputs.split(",") if inputs else certified[:: max(len(certified) // _FIVE, 1)][:_FIVE]
    draw_radius_sigma(fixed, ids, path, title)


def _measured(name: str, opened: "dict[str, Ledger]", path: Path, title: str, rule: str | None) -> None:
    """A figure of something that is measured on each ledger by itself."""
    from dualrs.report import diagnostics, figures
    from dualrs.storage import derive
    from dualrs.storage.results import read_sampled

    def slack(ledger: "Ledger") -> "Floats":
        diagnostics.demand_fixed_n(ledger, "the slack of the routing")
        return diagnostics.slack(derive(ledger, rule or "paper")[1])

    ways: dict[str, tuple[Callable[[Ledger], Any], Callable[[Any, Path, str], None]]] = {
        "best-sigma": (diagnostics.fixed_radii, figures.draw_best_sigma),
        "regret": (diagnostics.fixed_radii, figures.draw_regret),
        "slack": (slack, figures.draw_slack),
        "p-a": (lambda ledger: diagnostics.p_a(read_sampled(ledger)), figures.draw_p_a),
    }
    measure, draw = ways[name]
    draw({label: measure(ledger) for label, ledger in opened.items()}, path, title)


def _open(files: Sequence[str], stack: ExitStack) -> "tuple[dict[str, Ledger], list[Given]]":
    """Ledgers by name, the one given before ``=`` or the file's stem, and tables of other projects."""
    from dualrs.report.compare import is_ledger
    from dualrs.report.given import Given, names_of
    from dualrs.storage import Ledger

    opened: dict[str, Ledger] = {}
    tables: list[Given] = []
    for given in map(Given.parse, files):
        (name,) = names_of([given])
        if given.path.suffix != ".ledger" and not is_ledger(given.path):
            tables.append(given)
        elif name in opened:
            raise BadSetting(f"two files are called {name}; give them names, as NAME=FILE")
        else:
            opened[name] = stack.enter_context(Ledger.open(given.path))
    return opened, tables


def _named(tables: "Sequence[Given]") -> dict[str, Path]:
    """Tables by name, each of them one method."""
    from dualrs.report.given import names_of

    for table in tables:
        if table.sigma is not None or len(table.paths) > 1:
            raise BadSetting(
                f"{table.path}: a page takes a table as FILE or NAME=FILE; `dualrs compare` and `dualrs figure "
                "accuracy` take sigmas and the logs of ACES"
            )
    names = names_of(tables)
    if twice := [name for name in names if names.count(name) > 1]:
        raise BadSetting(f"two files are called {twice[0]}; give them other names, as NAME=FILE")
    return {name: table.path for name, table in zip(names, tables, strict=True)}


def _pictures(
    run: "Run", given: "DataSection | None", recipe: Path | None, bundle: Path | None, report: "Report"
) -> "Pictures":
    """The images of the inputs that the page shows and, with the networks of the run, copies of some."""
    from dualrs.cli.pictures import class_names, open_data
    from dualrs.report.page import Pictures

    smoothed = None
    if recipe is not None or bundle is not None:
        from dualrs.cli.copies import networks_of

        smoothed, recorded = networks_of(run.header, recipe, bundle)
        given = given or recorded
    dataset, note = open_data(run.header, given)
    names = class_names(run.header, dataset)
    if dataset is None:
        return Pictures({}, names, note)
    images = {why.id: dataset.image(why.index) for why in run.shown}
    copies = {}
    if smoothed is not None:
        from dualrs.cli.copies import copies_of

        for done, why in enumerate(run.copied):
            report("drawing copies", done, len(run.copied))
            copies[why.id] = copies_of(run.header, why, images[why.id], smoothed)
    return Pictures(images, names, copies=copies)
