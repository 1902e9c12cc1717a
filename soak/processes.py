"""Real processes: started in a session of their own, which all their children share, killed, and looked for (Linux)."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATIENCE = 300.0  # seconds until a command that does not end is a finding
GRACE = 60.0  # seconds that the workers of a killed command have to end
# Two small agents of Ray itself take another minute until they notice that their driver is gone.
SLOW = ("ray::Dashboard", "ray::RuntimeEnv")


@dataclass(frozen=True)
class Running:
    """A command at work, the leader of its session, and the file that has what it prints."""

    process: subprocess.Popen[str]
    log: Path

    def family(self) -> dict[int, str]:
        """All processes of the session that are alive, by number, with their command lines."""
        found = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
                    if int(session) == self.process.pid and state != "Z":
                        found[int(folder.name)] = (folder / "cmdline").read_text(errors="replace").replace("\0", " ")
                except OSError:  # it has just ended
                    continue
        return found

    def ended_before(self, condition: Callable[[], bool]) -> bool:
        """Wait until a condition holds; whether the command ended by itself before that."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            if condition():
                return self.process.poll() is not None
            if time.monotonic() > deadline:
                raise TimeoutError(f"a command did not end within {PATIENCE:.0f} seconds: {self.process.args!r}")
            time.sleep(0.001)
        return True

    def kill(self, everyone: bool) -> list[str]:
        """Kill the command, or all of its family; then see that all end. The names of those that do not."""
        family = self.family()
        for pid in [self.process.pid, *(family if everyone else ())]:
            end(pid)
        self.process.wait()
        return self.dismiss(family)

    def dismiss(self, seen: dict[int, str]) -> list[str]:
        """Wait until nobody of the family is left, and end those who stay; the names of those who should not have."""
        deadline = time.monotonic() + GRACE
        while (left := self._left()) and time.monotonic() < deadline:
            time.sleep(0.02)
        everybody = self.family()
        for pid in everybody:
            end(pid)
        for folder in {found for name in (*seen.values(), *everybody.values()) for found in _SCRATCH.findall(name)}:
            shutil.rmtree(folder, ignore_errors=True)  # what a killed driver could not remove
        return list(left.values())

    def _left(self) -> dict[int, str]:
        return {pid: name for pid, name in self.family().items() if not name.startswith(SLOW)}

    def said(self) -> str:
        """The end of what the command has printed."""
        return self.log.read_text(errors="replace")[-2000:].strip()


_SCRATCH = re.compile(r"/tmp/dualrs-\w+")


def start(words: Sequence[str], folder: Path, log: Path, pause: float) -> Running:
    """Start a command of dualrs in a folder, in a session of its own."""
    own = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    if pause:
        own["SOAK_PAUSE"] = str(pause)
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name("dualrs")), *words],
            cwd=folder, env=os.environ | own, stdout=output, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip
    return Running(process, log)


def end(pid: int) -> None:
    """Send SIGKILL to a process, if it is still there."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
