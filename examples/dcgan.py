"""Draws digits that nobody wrote: a convolutional generative adversarial network (Radford, Metz and Chintala, 2016).

python examples/dcgan.py                # a minute; writes dcgan.png
python examples/dcgan.py --epochs 1 --picture ""
"""

import argparse
from pathlib import Path

import numpy as np
from progress import Progress

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F
from rushlight.utils.data import DataLoader, TensorDataset

DATA = Path(__file__).parent / "data" / "digits" / "digits.npz"
NOISE = 32


def generator(width: int = 32) -> nn.Module:
    """Noise (n, 32, 1, 1) to images (n, 1, 8, 8) with values in [-1, 1]."""
    return nn.Sequential(
        nn.ConvTranspose2d(NOISE, 2 * width, 2, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1),
        nn.Tanh(),
    )


def discriminator(width: int = 32) -> nn.Module:
    """Images (n, 1, 8, 8) to the log-odds that they are real, (n,)."""
    return nn.Sequential(
        nn.Conv2d(1, width, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(width, 2 * width, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.LeakyReLU(0.2),
        nn.Conv2d(2 * width, 1, 2),
        nn.Flatten(0),
    )


def initialise(module: nn.Module) -> None:
    """The weights that the paper starts from."""
    if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
        nn.init.normal_(module.weight, 0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1, 0.02)


def load() -> torch.Tensor:
    """Images (n, 1, 8, 8) with values in [-1, 1]."""
    with np.load(DATA) as file:
        return torch.from_numpy(file["images"]).to(torch.float32).unsqueeze(1) / 8 - 1


class Game:
    """The two networks and how they learn from each other."""

    def __init__(self) -> None:
        self.artist, self.critic = generator().apply(initialise), discriminator().apply(initialise)
        betas = (0.5, 0.999)
        self.artist_optimizer = torch.optim.Adam(self.artist.parameters(), lr=1e-3, betas=betas)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=2e-4, betas=betas)
        self.loss = nn.BCEWithLogitsLoss()

    def play(self, real: torch.Tensor) -> tuple[float, float]:
        """One step of both; returns the losses of critic and artist."""
        fake = self.artist(torch.randn(len(real), NOISE, 1, 1))
        ones, zeros = torch.ones(len(real)), torch.zeros(len(real))
        self.critic_optimizer.zero_grad()
        critic_loss = self.loss(self.critic(real), 0.9 * ones) + self.loss(self.critic(fake.detach()), zeros)
        critic_loss.backward()
        self.critic_optimizer.step()

        self.artist_optimizer.zero_grad()
        artist_loss = self.loss(self.critic(fake), ones)
        artist_loss.backward()
        self.artist_optimizer.step()
        return critic_loss.item(), artist_loss.item()


def draw(path: str, real: torch.Tensor, fake: torch.Tensor, losses: np.ndarray) -> None:
    """Saves real and drawn digits side by side, and how the losses went."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(15, 5), layout="constrained")
    for axis, images, title in ((axes[0], real, "written"), (axes[1], fake, "drawn by the network")):
        tiles = F.pad(images[:100], (1, 1, 1, 1), value=-1).reshape(10, 10, 10, 10)
        axis.imshow(tiles.permute(0, 2, 1, 3).reshape(100, 100).numpy(), cmap="gray_r")
        axis.set(title=title, xticks=[], yticks=[])
    axes[2].plot(losses, label=["critic", "artist"])
    axes[2].set(title="losses", xlabel="epoch")
    axes[2].legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", default="dcgan.png", help='where the picture goes; "": none')
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    images = load()
    loader = DataLoader(TensorDataset(images), batch_size=64, shuffle=True, drop_last=True)
    game, losses = Game(), []
    for epoch in range(1, args.epochs + 1):
        bar, steps = Progress(f"epoch {epoch:3d}", len(loader)), []
        for (real,) in loader:
            steps.append(game.play(real))
            bar.step("critic {:.3f} artist {:.3f}".format(*steps[-1]))
        losses.append(np.mean(steps, 0))
        if epoch == 1 or epoch % 10 == 0 or epoch == args.epochs:
            print(f"epoch {epoch:3d}  loss of the critic {losses[-1][0]:.3f}, of the artist {losses[-1][1]:.3f}")
    if args.picture:
        game.artist.eval()
        with torch.no_grad():
            fake = game.artist(torch.randn(100, NOISE, 1, 1))
        draw(args.picture, images, fake, np.array(losses))
        print(f"written and drawn digits: {args.picture}")


if __name__ == "__main__":
    main()
