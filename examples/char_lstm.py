"""Learns to write sonnets a character at a time with an LSTM (Hochreiter and Schmidhuber, 1997).

python examples/char_lstm.py                # a minute; writes char_lstm.png
python examples/char_lstm.py --steps 5 --picture ""
"""

import argparse

from progress import Progress
from text import Text, draw, write

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F


class CharLSTM(nn.Module):
    """Indices of characters (n, length) to the logits of the next ones (n, length, vocabulary).

    Args:
        vocabulary: How many characters there are.
        width: Size of embeddings and of the hidden state.
        layers: LSTM layers.
    """

    def __init__(self, vocabulary: int, width: int = 128, layers: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True, dropout=0.2)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, indices: torch.Tensor, state: tuple | None = None) -> tuple[torch.Tensor, tuple]:
        """Logits, and the state to go on from."""
        hidden, state = self.lstm(self.embedding(indices), state)
        return self.head(hidden), state


def sample(model: CharLSTM, start: torch.Tensor, count: int) -> torch.Tensor:
    """What the model writes after `start`; the state goes from character to character."""
    state = None

    def next_logits(indices: torch.Tensor) -> torch.Tensor:
        nonlocal state
        new = indices if state is None else indices[-1:]
        logits, state = model(new[None], state)
        return logits[0, -1]

    return write(next_logits, start, count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", default="char_lstm.png", help='where the picture goes; "": none')
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    text = Text()
    model = CharLSTM(len(text.characters))
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    print(f"{len(text.indices):,} characters, {sum(p.numel() for p in model.parameters()):,} parameters")
    bar, losses = Progress("training", args.steps), []
    for step in range(1, args.steps + 1):
        inputs, targets = text.batch(32, 64)
        logits, _ = model(inputs)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        bar.step(f"loss {losses[-1]:.3f}")
        if step % 200 == 0 or step == args.steps:
            print(f"step {step:4d}  loss {sum(losses[-50:]) / len(losses[-50:]):.3f} nats per character")
    model.eval()
    written = text.decode(sample(model, text.indices[:20], 600))
    print(written[:300])
    if args.picture:
        draw(args.picture, "LSTM", losses, written)
        print(f"learning curve and sonnet: {args.picture}")


if __name__ == "__main__":
    main()
