"""Which inputs of a dataset: a slice of their positions, or a share of them drawn once and for all."""

from collections.abc import Sequence
from hashlib import blake2b

from dualrs.errors import BadSetting


def parse_inputs(text: str, count: int) -> Sequence[int]:
    """Positions among ``count``, ascending: START:STOP:STEP, or a share such as 20%.

    A share is random but always the same one, and a smaller one is part of a larger.
    """
    try:
        if text.endswith("%"):
            share = float(text[:-1]) / 100
            if not 0 < share <= 1:
                raise ValueError
            drawn = sorted(range(count), key=lambda i: blake2b(str(i).encode(), digest_size=8).digest())
            chosen: Sequence[int] = sorted(drawn[: round(share * count)])
        elif ":" not in text:
            raise ValueError
        else:
            chosen = range(count)[slice(*(int(t) if t else None for t in text.split(":")))]
    except (TypeError, ValueError) as error:
        raise BadSetting(
            f"inputs are START:STOP:STEP, such as 0:500 or ::20, or a share such as 20%; got {text!r}"
        ) from error
    if not len(chosen):
        raise BadSetting(f"{text} leaves none of the {count} inputs")
    return chosen
