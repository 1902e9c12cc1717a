"""How long something takes, in words."""


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    minutes = seconds / 60
    if minutes < 120:
        return f"{seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min"
    hours = minutes / 60
    return f"{hours:.1f} h" if hours < 100 else f"{hours / 24:.1f} days"
