"""Sets of options in the signature of a command: spread out for the parser, put together for the call."""

from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Annotated

import pytest
from typer import Option

from dualrs.cli.sets import Only, spread_out


@dataclass(frozen=True)
class Meal:
    soup: Annotated[str, Option(help="First.")] = "leek"
    main: Annotated[str | None, Option(help="Second.")] = None
    sweet: Annotated[bool, Option("--sweet")] = False


def test_a_set_is_spread_out_in_place_and_put_together_again():
    seen = []

    @spread_out
    def eat(guest: str, hour: int = 12, *, meal: Meal) -> None:
        """Eat."""
        seen.append((guest, hour, meal))

    assert list(signature(eat).parameters) == ["guest", "hour", "soup", "main", "sweet"]
    assert eat.__annotations__["soup"] == Meal.__annotations__["soup"]
    assert eat.__doc__ == "Eat."
    eat(guest="Ann", hour=1, soup="pea", main=None, sweet=True)
    assert seen == [("Ann", 1, Meal("pea", None, True))]


def test_a_command_may_take_part_of_a_set_with_defaults_of_its_own():
    seen = []

    @spread_out
    def eat(*, meal: Annotated[Meal, Only("sweet", main=..., soup="pea")]) -> None:
        seen.append(meal)

    found = {name: parameter.default for name, parameter in signature(eat).parameters.items()}
    assert found == {"soup": "pea", "main": Parameter.empty, "sweet": False}
    assert list(found) == ["soup", "main", "sweet"]  # as declared

    @spread_out
    def taste(*, meal: Annotated[Meal, Only("main")]) -> None:
        seen.append(meal)

    taste(main="pie")
    assert seen == [Meal("leek", "pie", False)]


def test_an_option_that_is_not_in_the_set_is_refused():
    def eat(*, meal: Annotated[Meal, Only("soap")]) -> None:
        raise AssertionError

    with pytest.raises(ValueError, match="soap"):
        spread_out(eat)


def test_an_option_that_is_in_two_sets_is_refused():
    def eat(*, noon: Meal, evening: Meal) -> None:
        raise AssertionError

    with pytest.raises(ValueError, match="soup"):
        spread_out(eat)
