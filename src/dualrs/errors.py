"""Everything dualrs can refuse, and everything it warns of. docs/warnings.md has an entry for each.

An error is a sentence that says what was wrong, where, and what to do; the command line prints it and exits
with code 2. Nothing that was recorded before is touched.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

_NAMED = 5  # inputs that a message names


def first_line(error: Exception) -> str:
    """What another library says first, for a sentence of ours; its kind if it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The known name that is nearest to another one, to end a sentence with; nothing if none is near."""
    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


class DualrsError(Exception):
    """Base of all errors that dualrs raises on purpose."""


class BadSetting(DualrsError, ValueError):
    """A number or name outside its range: alpha, n, n0, sigmas, sigma_e, rule, batch size."""


class TooFewVotes(BadSetting):
    """n is so small that even unanimous votes could not certify anything at this alpha."""


class UnusableVotes(DualrsError, ValueError):
    """Votes that a rule cannot use: missing, incomplete, of the wrong shape or gathered under another plan."""


class BadImage(DualrsError, ValueError):
    """An input that is not a uint8 image or a float image in [0, 1]."""


class BadModel(DualrsError, TypeError):
    """Something that is not a torch module, or whose output is not one row of logits per input."""


class TrainingMode(DualrsError, RuntimeError):
    """A module, or a part of it, is in training mode."""


class NonFiniteLogits(DualrsError, ArithmeticError):
    """A network answered NaN or infinity: that is not a vote."""


class BatchDependent(DualrsError, RuntimeError):
    """The answer to an input changes with the other inputs of its batch."""


class NonDeterministic(DualrsError, RuntimeError):
    """The same batch, given twice, got different answers."""


class OutOfMemory(DualrsError, MemoryError):
    """The network does not fit, even at the smallest batch, or memory ran out in the middle of a run."""


class WorkersFailed(DualrsError, RuntimeError):
    """No worker could be started, none is left, or they do not count alike; or there is no cluster to join."""


class InputsFailed(DualrsError, RuntimeError):
    """Some inputs could not be counted and were left out; ``failures`` says why, by input."""

    def __init__(self, failures: Mapping[str, str]) -> None:
        self.failures = dict(failures)
        named = [f"input {name}: {reason}" for name, reason in self.failures.items()]
        more = f"; and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        super().__init__(
            f"{len(named)} {'input was' if len(named) == 1 else 'inputs were'} left out ({'; '.join(named[:_NAMED])}"
            f"{more}); what was recorded of the others is kept, and the same command tries these again"
        )


class LedgerError(DualrsError):
    """A file that is not a ledger, is damaged, or cannot be written."""


class ForeignLedger(LedgerError):
    """A ledger that belongs to another run."""


class LedgerBusy(LedgerError):
    """A ledger that another process is writing."""


class BadTable(DualrsError, ValueError):
    """A table of results that cannot be read."""


class BadRecipe(DualrsError, ValueError):
    """A recipe or a name on the command line that does not lead to a model or to data."""


class BadData(DualrsError, ValueError):
    """A dataset that is missing, incomplete, damaged or not what it says it is."""


class BadCheckpoint(DualrsError, ValueError):
    """A file of weights that is missing, cut short, altered, of another architecture or not only weights."""


class Unreachable(DualrsError, ConnectionError):
    """A hub or a registry that does not answer, or has nothing under this name."""


class MissingExtra(DualrsError, ImportError):
    """An optional package that a model or a dataset needs and that is not installed."""


class DualrsWarning(UserWarning):
    """Base of all warnings that dualrs gives."""


class InputQuantized(DualrsWarning):
    """A float image lay off the 8-bit grid; the certificate is centred at the nearest 8-bit image."""


class ClassesByNumber(DualrsWarning):
    """Network and data have other names for their classes, which are matched by their numbers."""


class RoundingDependent(DualrsWarning):
    """Logits, though no answer, differ in the last bits with the place in the batch or from call to call."""


class NotCompiled(DualrsWarning):
    """Torch could not compile a network, which runs as it is: the votes are the same, and slower."""
