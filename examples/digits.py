"""Trains a small convolutional network on 1,438 images of handwritten digits and tests it on 359 others.

python examples/digits.py                # a minute at most; writes digits.png
python examples/digits.py --epochs 5 --picture ""
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import rushlight as torch
from rushlight import nn
from rushlight.utils.data import DataLoader, TensorDataset, random_split

DATA = Path(__file__).parent / "data" / "digits" / "digits.npz"


def load(test_share: float, device: str) -> list:
    """Training and test set, split at random: images (1, 8, 8) with values in [0, 1], and labels."""
    with np.load(DATA) as file:
        images = torch.from_numpy(file["images"]).to(torch.float32).unsqueeze(1) / 16
        labels = torch.from_numpy(file["labels"]).to(torch.int64)
    return random_split(TensorDataset(images.to(device), labels.to(device)), [1 - test_share, test_share])


def network(width: int = 32) -> nn.Module:
    """Two blocks of convolutions, each halving the image, and a classifier."""
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(8 * width, 10),
    )


def progress(epoch: int, done: int, total: int, loss: float) -> None:
    """Draws the bar of one epoch over the last one; only on a terminal."""
    if sys.stderr.isatty():
        bar = "█" * round(30 * done / total)
        print(f"\repoch {epoch:2d} {bar:30s} {done:2d}/{total} loss {loss:.4f} ", end="", file=sys.stderr, flush=True)
        if done == total:
            print("\r" + " " * 70 + "\r", end="", file=sys.stderr, flush=True)


def train(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer, epoch: int) -> float:
    """One pass over the training set; returns the mean loss."""
    model.train()
    loss_of = nn.CrossEntropyLoss()
    total = 0.0
    for step, (images, labels) in enumerate(loader, 1):
        optimizer.zero_grad()
        loss = loss_of(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
        progress(epoch, step, len(loader), total / step)
    return total / len(loader)


def predict(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    """The most likely digit of each image, (n,)."""
    model.eval()
    with torch.no_grad():
        return torch.cat([model(images).argmax(1) for images, _ in loader])


def draw(path: str, losses: list, accuracies: list, wrong: list) -> None:
    """Saves the learning curve, and the test images that the network got wrong with what it took them for."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows, columns = -(-len(wrong) // 8) or 1, max(4, min(len(wrong), 8))
    figure = plt.figure(figsize=(9, 4 + 1.5 * rows), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=[3, rows])
    axes = upper.subplots()
    epochs = range(1, len(losses) + 1)
    axes.plot(epochs, losses, "o-", color="tab:blue", label="training loss")
    axes.set(xlabel="epoch", ylabel="training loss", yscale="log", title=f"held-out accuracy {accuracies[-1]:.2%}")
    right = axes.twinx()
    right.plot(epochs, accuracies, "s-", color="tab:orange", label="held-out accuracy")
    right.set(ylabel="held-out accuracy", ylim=(min(0.9, *accuracies), 1.0))
    axes.legend(handles=[*axes.lines, *right.lines], loc="center right")
    lower.suptitle(f"{len(wrong)} test images taken for another digit" if wrong else "every test image is right")
    for cell, (image, guess, label) in zip(lower.subplots(rows, columns).flat, wrong, strict=False):
        cell.imshow(image, cmap="gray_r")
        cell.set_title(f"{label} taken for {guess}", fontsize=8)
    for cell in lower.axes:
        cell.axis("off")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="where the network is trained, as cuda or opencl")
    parser.add_argument("--picture", default="digits.png", help='where the picture goes; "": none')
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    train_set, test_set = load(test_share=0.2, device=args.device)
    loader = DataLoader(train_set, batch_size=64, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=256)
    labels = torch.cat([labels for _, labels in test_loader])
    model = network().to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    size = sum(parameter.numel() for parameter in model.parameters())
    print(f"{len(train_set)} images to train on, {len(test_set)} held out, {size} parameters")

    losses, accuracies, seconds = [], [], 0.0
    for epoch in range(1, args.epochs + 1):
        for group in optimizer.param_groups:  # the learning rate falls in a straight line
            group["lr"] = 2e-3 * (1 - (epoch - 1) / args.epochs)
        start = time.perf_counter()
        losses.append(train(model, loader, optimizer, epoch))
        seconds += time.perf_counter() - start
        guesses = predict(model, test_loader)
        accuracies.append((guesses == labels).to(torch.float32).mean().item())
        print(f"epoch {epoch:2d}  loss {losses[-1]:.4f}  held-out accuracy {accuracies[-1]:.4f}")

    speed = args.epochs * len(train_set) / seconds
    print(f"held-out accuracy {accuracies[-1]:.4f}, {speed:,.0f} images/s, {seconds:.1f} s of training")
    if args.picture:
        images = torch.cat([images for images, _ in test_loader]).squeeze(1).numpy(force=True)
        wrong = [(images[i], int(guesses[i]), int(labels[i])) for i in (guesses != labels).nonzero().flatten().tolist()]
        draw(args.picture, losses, accuracies, wrong)
        print(f"learning curve and wrong answers: {args.picture}")


if __name__ == "__main__":
    main()
