"""Run every benchmark and print one table."""

from rich.console import Console
from rich.table import Table

from benchmarks import adaptive, engine, reading, rules


def main() -> None:
    table = Table("benchmark", "measured", "wanted")
    console = Console()
    for benchmark in (
        rules.four_rules,
        reading.comparison,
        engine.overhead,
        engine.abreast,
        engine.packing,
        engine.compiled,
        adaptive.growth,
        adaptive.cost_of_a_certificate,
    ):
        with console.status(f"{benchmark.__module__}.{benchmark.__name__}"):
            for row in benchmark():
                table.add_row(*row)
    console.print(table)


if __name__ == "__main__":
    main()
