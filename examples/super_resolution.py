"""Doubles the resolution of images of digits: a sub-pixel convolutional network (Shi et al., 2016).

python examples/super_resolution.py                # half a minute; writes super_resolution.png
python examples/super_resolution.py --epochs 1 --picture ""
"""

import argparse
from pathlib import Path

import numpy as np
from progress import Progress

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F
from rushlight.utils.data import DataLoader, TensorDataset, random_split

DATA = Path(__file__).parent / "data" / "digits" / "digits.npz"


class SuperResolution(nn.Module):
    """Images (n, 1, h, w) to (n, 1, 2 h, 2 w): what bilinear interpolation gives, and a correction that is learnt.

    Args:
        width: Channels of the hidden layers.
    """

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.correction = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width // 2, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width // 2, 4, 3, padding=1),
            nn.PixelShuffle(2),  # four channels become the four pixels of a twice as fine grid
        )

    def forward(self, small: torch.Tensor) -> torch.Tensor:
        """The enlarged images."""
        return enlarge(small) + self.correction(small)


def enlarge(small: torch.Tensor) -> torch.Tensor:
    """Images of twice the size by bilinear interpolation, to compare with."""
    return F.interpolate(small, scale_factor=2, mode="bilinear", align_corners=False)


def load() -> list:
    """Training and test set of pairs: images (1, 4, 4) of mean values over 2 by 2 pixels, and the images (1, 8, 8)."""
    with np.load(DATA) as file:
        images = torch.from_numpy(file["images"]).to(torch.float32).unsqueeze(1) / 16
    return random_split(TensorDataset(F.avg_pool2d(images, 2), images), [0.8, 0.2])


def noise_ratio(guess: torch.Tensor, image: torch.Tensor) -> float:
    """Peak signal to noise ratio in decibels, of values in [0, 1]."""
    return -10 * (guess - image).square().mean().log10().item()


def draw(path: str, columns: dict[str, torch.Tensor]) -> None:
    """Saves images in columns of a kind, a digit in each row."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = min(8, len(next(iter(columns.values()))))
    figure, axes = plt.subplots(rows, len(columns), figsize=(1.6 * len(columns), 1.5 * rows), layout="constrained")
    for column, (title, images) in enumerate(columns.items()):
        for row in range(rows):
            axes[row, column].imshow(images[row, 0].numpy(), cmap="gray_r", vmin=0, vmax=1)
            axes[row, column].set(xticks=[], yticks=[])
        axes[0, column].set_title(title, fontsize=9)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", default="super_resolution.png", help='where the picture goes; "": none')
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    train_set, test_set = load()
    loader = DataLoader(train_set, batch_size=64, shuffle=True)
    ((small, image),) = DataLoader(test_set, batch_size=len(test_set))
    print(f"bilinear interpolation: {noise_ratio(enlarge(small), image):.2f} dB")
    model = SuperResolution()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, args.epochs + 1):
        bar = Progress(f"epoch {epoch:3d}", len(loader))
        model.train()
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
            bar.step(f"loss {loss.item():.5f}")
        model.eval()
        with torch.no_grad():
            guess = model(small)
        if epoch == 1 or epoch % 10 == 0 or epoch == args.epochs:
            print(f"epoch {epoch:3d}  held-out images: {noise_ratio(guess, image):.2f} dB")
    if args.picture:
        draw(args.picture, {"input": small, "bilinear": enlarge(small), "network": guess, "original": image})
        print(f"enlarged images: {args.picture}")


if __name__ == "__main__":
    main()
