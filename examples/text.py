"""The text that the language models learn, by characters."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import rushlight as torch

FILE = Path(__file__).parent / "data" / "sonnets" / "sonnets.txt"


class Text:
    """A text as the indices of its characters.

    Args:
        path: The file.
    """

    def __init__(self, path: Path = FILE) -> None:
        text = path.read_text(encoding="utf-8")
        self.characters = sorted(set(text))
        index = {character: i for i, character in enumerate(self.characters)}
        self.indices = torch.tensor([index[character] for character in text])

    def batch(self, size: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Random pieces (size, length), and each shifted by one character: what is to be predicted."""
        starts = torch.randint(len(self.indices) - length, (size, 1))
        places = starts + torch.arange(length + 1)
        pieces = self.indices[places]
        return pieces[:, :-1], pieces[:, 1:]

    def decode(self, indices: torch.Tensor) -> str:
        """The characters of indices (n,)."""
        return "".join(self.characters[i] for i in indices.tolist())


def write(next_logits: Callable[[torch.Tensor], torch.Tensor], start: torch.Tensor, count: int) -> torch.Tensor:
    """Goes on with a text, a drawn character at a time.

    Args:
        next_logits: Gives the logits of the next character, (vocabulary), for the indices so far, (n,).
        start: Indices to begin with.
        count: How many to add.
    """
    with torch.no_grad():
        for _ in range(count):
            probabilities = (next_logits(start) / 0.8).softmax(-1)  # a little less daring than the model
            start = torch.cat([start, torch.multinomial(probabilities, 1)])
    return start


def draw(path: str, title: str, losses: list[float], sample: str) -> None:
    """Saves the loss by step, and a text that the model wrote."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    left.plot(losses)
    left.set(xlabel="step", ylabel="loss per character in nats", title=title)
    lines = [part for line in sample.splitlines() for part in textwrap.wrap(line, 72) or [""]]
    right.text(0, 1, "\n".join(lines[:30]), va="top", family="monospace", fontsize=8)
    right.axis("off")
    figure.savefig(path, dpi=120)
