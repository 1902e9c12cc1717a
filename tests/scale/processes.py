"""Processes of this machine, as /proc tells of them."""

import time
from pathlib import Path


def descendants(pid):
    """The processes that a process has started, and those that these have started, by number with their names."""
    children, names = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state = (folder / "stat").read_text().rpartition(")")[2].split()
                names[int(folder.name)] = (folder / "cmdline").read_text()
            except (OSError, ProcessLookupError):
                continue
            if state[0] != "Z":
                children.setdefault(int(state[1]), []).append(int(folder.name))
    found, waiting = {}, [pid]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            found[child] = names[child]
            waiting.append(child)
    return found


def voters(pid):
    """The workers under a process."""
    return sorted(child for child, name in descendants(pid).items() if name.startswith("ray::Voter"))


def exists(pid):
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, ProcessLookupError):
        return False


def wait_until(condition, what, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.02)
