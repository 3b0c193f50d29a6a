"""Learns to write sonnets a character at a time with a small GPT (Radford et al., 2018).

python examples/gpt.py                # some minutes; writes gpt.png
python examples/gpt.py --steps 5 --picture ""
"""

import argparse
import math

from progress import Progress
from text import Text, draw, write

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F


class Attention(nn.Module):
    """Causal self-attention: each character looks at itself and at those before it.

    Args:
        width: Size of the vectors.
        heads: How many attend side by side.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Vectors (n, length, width) to as many."""
        n, length, width = x.shape
        query, key, value = self.query_key_value(x).view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = query @ key.mT / math.sqrt(width / self.heads)
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(later, -math.inf).softmax(-1)
        return self.output((weights @ value).transpose(1, 2).reshape(n, length, width))


class Block(nn.Module):
    """Attention and a network for each vector, each normalised before and added to what it reads.

    Args:
        width: Size of the vectors.
        heads: Of the attention.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(width), Attention(width, heads), nn.Dropout(0.1))
        self.network = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Vectors (n, length, width) to as many."""
        x = x + self.attention(x)
        return x + self.network(x)


class GPT(nn.Module):
    """Indices of characters (n, length) to the logits of the next ones (n, length, vocabulary).

    Args:
        vocabulary: How many characters there are.
        context: How many characters it sees at most.
        width: Size of the vectors.
        heads: Of each attention.
        layers: Blocks.
    """

    def __init__(self, vocabulary: int, context: int, width: int = 96, heads: int = 4, layers: int = 3) -> None:
        super().__init__()
        self.context = context
        self.characters, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)), nn.LayerNorm(width))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        """Logits."""
        x = self.characters(indices) + self.places(torch.arange(indices.shape[-1]))
        return self.head(self.blocks(x))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", default="gpt.png", help='where the picture goes; "": none')
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    text = Text()
    model = GPT(len(text.characters), context=64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    print(f"{len(text.indices):,} characters, {sum(p.numel() for p in model.parameters()):,} parameters")
    bar, losses = Progress("training", args.steps), []
    for step in range(1, args.steps + 1):
        for group in optimizer.param_groups:  # up in 50 steps, then down along a cosine
            group["lr"] = 2e-3 * min(step / 50, 0.5 + 0.5 * math.cos(math.pi * step / args.steps) + 0.01)
        inputs, targets = text.batch(32, model.context)
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        bar.step(f"loss {losses[-1]:.3f}")
        if step % 200 == 0 or step == args.steps:
            print(f"step {step:4d}  loss {sum(losses[-50:]) / len(losses[-50:]):.3f} nats per character")
    model.eval()
    written = text.decode(write(lambda indices: model(indices[None, -model.context :])[0, -1], text.indices[:20], 600))
    print(written[:300])
    if args.picture:
        draw(args.picture, "GPT", losses, written)
        print(f"learning curve and sonnet: {args.picture}")


if __name__ == "__main__":
    main()
