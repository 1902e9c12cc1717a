"""Sets of options, each declared once as a dataclass, and spread out in the signature of every command that takes it.

A field of the dataclass is an option as typer reads it: its type with an `Option`, and its default.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_args, get_origin


class Only:
    """The options of a set that a command takes; those given as keywords have this default, and ``...`` is required.

    What is left out has the default of the set.
    """

    def __init__(self, *names: str, **defaults: object) -> None:
        self.names, self.defaults = (*names, *defaults), defaults


def spread_out(command: Callable[..., None]) -> Callable[..., None]:
    """A command as typer reads it: options instead of sets. They are put together again before the call."""
    options: list[Parameter] = []
    sets: dict[str, tuple[Any, list[str]]] = {}
    for name, parameter in signature(command).parameters.items():
        annotated = get_origin(parameter.annotation) is Annotated
        declared, *marks = get_args(parameter.annotation) if annotated else [parameter.annotation]
        if not is_dataclass(declared):
            options.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        known = {field.name: field for field in fields(declared)}
        only = next((mark for mark in marks if isinstance(mark, Only)), Only(*known))
        taken = sorted(only.names, key=list(known).index)  # as declared; a name that is not there is an error
        sets[name] = declared, taken
        for option in taken:
            default = only.defaults.get(option, known[option].default)
            default = Parameter.empty if default is ... else default
            kind = known[option].type
            options.append(Parameter(option, Parameter.KEYWORD_ONLY, default=default, annotation=kind))

    @wraps(command)
    def called(**values: Any) -> None:
        built = {name: of(**{option: values.pop(option) for option in taken}) for name, (of, taken) in sets.items()}
        command(**values, **built)

    called.__signature__ = Signature(options)  # type: ignore[attr-defined]
    called.__annotations__ = {option.name: option.annotation for option in options}
    return called
