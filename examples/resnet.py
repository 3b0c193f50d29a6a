"""Trains a ResNet-18 (He et al., 2016) to tell shapes in noisy images of 32 by 32 pixels that are made up on the way.

python examples/resnet.py                # some minutes; writes resnet.png
python examples/resnet.py --steps 2 --width 8 --picture ""
"""

import argparse
import time

import numpy as np
from progress import Progress

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

SHAPES = ("disc", "ring", "square", "frame", "cross", "bar", "stripes", "triangle")


class Block(nn.Module):
    """Two convolutions beside a short cut.

    Args:
        channels: Of the input.
        width: Of the output.
        stride: Step of the first convolution.
    """

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.shortcut = nn.Sequential()
        if stride != 1 or channels != width:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The sum of both ways, rectified."""
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def resnet18(classes: int, width: int = 64) -> nn.Module:
    """ResNet-18 for small images: a stem of 3 by 3, four stages of two blocks, and a classifier."""
    layers = [nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    channels = width
    for stage in range(4):
        for stride in (1 if stage == 0 else 2, 1):
            layers.append(Block(channels, width << stage, stride))
            channels = width << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def images(n: int, rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Images (n, 3, 32, 32) of a shape in some colour, place, size and turn on noise, and the index of the shape."""
    labels = rng.integers(0, len(SHAPES), n)
    turn, size = rng.uniform(-0.6, 0.6, (n, 1, 1)), rng.uniform(6, 11, (n, 1, 1))
    dx, dy = np.arange(32) - rng.uniform(11, 21, (n, 1, 1)), np.arange(32)[:, None] - rng.uniform(11, 21, (n, 1, 1))
    u, v = (np.cos(turn) * dx + np.sin(turn) * dy) / size, (np.cos(turn) * dy - np.sin(turn) * dx) / size
    radius, largest = np.hypot(u, v), np.maximum(abs(u), abs(v))
    masks = np.stack([
        radius < 1, (radius < 1) & (radius > 0.6), largest < 0.85, (largest < 0.85) & (largest > 0.5),
        (np.minimum(abs(u), abs(v)) < 0.3) & (largest < 1), (largest < 1) & (abs(u) < 0.4),
        (largest < 0.9) & (np.sin(9 * u) > 0), (v > -0.6) & (v < 1 - 2 * abs(u)),
    ])  # fmt: skip
    mask = masks[labels, np.arange(n)][:, None]
    light, dark = rng.uniform(0.5, 1, (n, 3, 1, 1)), rng.uniform(0, 0.4, (n, 3, 1, 1))
    pictures = np.where(mask, light, dark) + rng.normal(0, 0.1, (n, 3, 32, 32))
    return torch.from_numpy(pictures.astype(np.float32)), torch.from_numpy(labels)


def draw(path: str, losses: list[float], pictures: torch.Tensor, guesses: torch.Tensor, labels: torch.Tensor) -> None:
    """Saves the loss by step, and held-out images with what the network takes them for."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(9, 8), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=[2, 3])
    upper.subplots().plot(losses)
    upper.axes[0].set(xlabel="step", ylabel="loss", yscale="log")
    for i, axis in enumerate(lower.subplots(3, 8).flat):
        axis.imshow(pictures[i].permute(1, 2, 0).clamp(0, 1).numpy())
        right = guesses[i] == labels[i]
        axis.set_title(SHAPES[guesses[i]], fontsize=8, color="black" if right else "red")
        axis.axis("off")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=64, help="channels of the first stage")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", default="resnet.png", help='where the picture goes; "": none')
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    model = resnet18(len(SHAPES), args.width)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    bar, losses, start = Progress("training", args.steps), [], time.perf_counter()
    for _ in range(args.steps):
        pictures, labels = images(args.batch, rng)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(pictures), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        bar.step(f"loss {losses[-1]:.3f}")
    speed = args.steps * args.batch / (time.perf_counter() - start)
    model.eval()
    pictures, labels = images(256, rng)
    with torch.no_grad():
        guesses = torch.cat([model(part).argmax(1) for part in pictures.split(64)])
    accuracy = (guesses == labels).float().mean().item()
    print(f"last loss {losses[-1]:.3f}, held-out accuracy {accuracy:.3f}, {speed:.0f} images/s")
    if args.picture:
        draw(args.picture, losses, pictures, guesses, labels)
        print(f"loss and held-out images: {args.picture}")


if __name__ == "__main__":
    main()
