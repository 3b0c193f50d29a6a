"""Learns a map of handwritten digits with two coordinates: a variational autoencoder (Kingma and Welling, 2014).

python examples/vae.py                # half a minute; writes vae.png
python examples/vae.py --epochs 2 --picture ""
"""

import argparse
from pathlib import Path

import numpy as np
from progress import Progress

import rushlight as torch
from rushlight import nn
from rushlight.distributions import ContinuousBernoulli, Normal, kl_divergence
from rushlight.nn import functional as F
from rushlight.utils.data import DataLoader, TensorDataset

DATA = Path(__file__).parent / "data" / "digits" / "digits.npz"


class VAE(nn.Module):
    """Images of 64 pixels to normal distributions over the map, and points of the map to images.

    Args:
        width: Units of the hidden layers.
    """

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4)
        )
        self.decoder = nn.Sequential(
            nn.Linear(2, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 64)
        )

    def encode(self, images: torch.Tensor) -> Normal:
        """Where images (n, 64) may lie on the map, a distribution over (n, 2)."""
        mean, log_scale = self.encoder(images).chunk(2, -1)
        return Normal(mean, log_scale.exp())

    def decode(self, points: torch.Tensor) -> ContinuousBernoulli:
        """What points (n, 2) may look like, a distribution over (n, 64)."""
        return ContinuousBernoulli(logits=self.decoder(points))

    def loss(self, images: torch.Tensor) -> torch.Tensor:
        """Minus the evidence lower bound, for each image on average."""
        posterior = self.encode(images)
        prior = Normal(torch.zeros_like(posterior.loc), 1.0)
        log_likelihood = self.decode(posterior.rsample()).log_prob(images).sum(-1)
        return (kl_divergence(posterior, prior).sum(-1) - log_likelihood).mean()


def load() -> TensorDataset:
    """Images (64,) with values in [0, 1], and labels."""
    with np.load(DATA) as file:
        images = torch.from_numpy(file["images"]).to(torch.float32).flatten(1) / 16
        return TensorDataset(images, torch.from_numpy(file["labels"]))


def draw(path: str, model: VAE, images: torch.Tensor, labels: torch.Tensor) -> None:
    """Saves the digits on the map, and what the decoder sees at a grid of its points."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with torch.no_grad():
        points = model.encode(images).mean.numpy()
        side = torch.linspace(-3, 3, 16)
        grid = torch.stack(torch.meshgrid(side, side.flip(0), indexing="xy"), -1).reshape(-1, 2)
        decoded = F.pad(model.decode(grid).mean.reshape(16, 16, 8, 8), (1, 1, 1, 1))
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.5), layout="constrained")
    drawn = left.scatter(*points.T, c=labels.numpy(), cmap="tab10", s=6)
    figure.colorbar(drawn, ax=left, ticks=range(10))
    left.set(title="digits on the map", xlim=(-4, 4), ylim=(-4, 4))
    right.imshow(decoded.permute(0, 2, 1, 3).reshape(160, 160).numpy(), cmap="gray_r", extent=(-3, 3, -3, 3))
    right.set(title="what the decoder sees there")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", default="vae.png", help='where the picture goes; "": none')
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    data = load()
    loader = DataLoader(data, batch_size=64, shuffle=True)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, args.epochs + 1):
        bar, losses = Progress(f"epoch {epoch:3d}", len(loader)), []
        for images, _ in loader:
            optimizer.zero_grad()
            loss = model.loss(images)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            bar.step(f"loss {losses[-1]:.2f}")
        if epoch == 1 or epoch % 10 == 0 or epoch == args.epochs:
            print(f"epoch {epoch:3d}  negative evidence lower bound {np.mean(losses):8.3f}")
    if args.picture:
        draw(args.picture, model, *data.tensors)
        print(f"map of the digits: {args.picture}")


if __name__ == "__main__":
    main()
