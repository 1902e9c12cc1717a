"""The bar of a training."""

from typing import TYPE_CHECKING

from dualrs.progress import OneBar
from dualrs.training.processes import is_main

if TYPE_CHECKING:
    from dualrs.training.loop import State


class TrainingBar(OneBar):
    """How a training gets on; of several processes, only the first shows it."""

    def __init__(self, title: str) -> None:
        super().__init__(title, None, "preparing")
        self._progress.disable = not is_main()

    def update(self, state: "State") -> None:
        """Show the present state; after the last step the result is measured, which takes a while."""
        if state.doing:
            self._show(state.step, state.steps, state.doing)
            return
        speed = f"rate {state.rate:.2g} · {state.images_per_second:,.0f} images/s"
        text = f"loss {state.loss:.4f} · {'measuring' if state.step == state.steps else speed}"
        self._show(state.step, state.steps, text)
