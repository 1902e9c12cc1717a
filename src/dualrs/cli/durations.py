"""How long something takes, in words."""


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    minutes = seconds / 60
    return f"{seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
