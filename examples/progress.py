"""The progress bar of the examples."""

import sys


class Progress:
    """A bar on a terminal that is drawn over itself, and is gone at the end; nothing elsewhere.

    Args:
        label: What stands before the bar.
        total: How many steps there are.
    """

    def __init__(self, label: str, total: int) -> None:
        self.label = label
        self.total = total
        self.done = 0

    def step(self, note: str = "") -> None:
        """One more step is done; `note` stands behind the bar."""
        self.done += 1
        if sys.stderr.isatty():
            bar = "█" * round(30 * self.done / self.total)
            end = "\r\033[K" if self.done == self.total else ""
            text = f"\r\033[K{self.label} {bar:30s} {self.done}/{self.total} {note}"
            print(text + end, end="", file=sys.stderr, flush=True)
