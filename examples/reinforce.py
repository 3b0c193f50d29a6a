"""Learns to balance a pole on a cart by trial and error: REINFORCE (Williams, 1992) with a moving baseline.

python examples/reinforce.py                # a minute; writes reinforce.png
python examples/reinforce.py --episodes 20 --picture ""
"""

import argparse
import math

import numpy as np
from progress import Progress

import rushlight as torch
from rushlight import nn
from rushlight.distributions import Categorical


class CartPole:
    """A pole hinged to a cart that is pushed left or right (Barto, Sutton and Anderson, 1983).

    The state is the cart's position and speed, and the pole's angle and angular speed. An episode ends when the pole
    leans more than 12 degrees, the cart leaves the track of 2.4 m to each side, or after `limit` steps of 20 ms.
    """

    gravity, cart, pole, half_length, force, dt = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02

    def __init__(self, rng: np.random.Generator, limit: int = 300) -> None:
        self.rng = rng
        self.limit = limit

    def reset(self) -> list[float]:
        """Starts an episode near the middle, upright; returns the state."""
        self.state = self.rng.uniform(-0.05, 0.05, 4).tolist()
        self.steps = 0
        return self.state

    def step(self, action: int) -> tuple[list[float], bool]:
        """Pushes left (0) or right (1); returns the state and whether the episode is over."""
        x, speed, angle, spin = self.state
        sin, cos, mass = math.sin(angle), math.cos(angle), self.cart + self.pole
        push = (self.force if action else -self.force) + self.pole * self.half_length * spin**2 * sin
        turning = (self.gravity * sin - cos * push / mass) / (self.half_length * (4 / 3 - self.pole * cos**2 / mass))
        sliding = (push - self.pole * self.half_length * turning * cos) / mass
        self.state = [x + self.dt * speed, speed + self.dt * sliding, angle + self.dt * spin, spin + self.dt * turning]
        self.steps += 1
        fallen = abs(self.state[0]) > 2.4 or abs(self.state[2]) > math.radians(12)
        return self.state, fallen or self.steps >= self.limit


def play(world: CartPole, policy: nn.Module) -> tuple[torch.Tensor, torch.Tensor, int]:
    """One episode; returns its states (n, 4), actions (n,) and length n."""
    states, actions, over = [world.reset()], [], False
    with torch.no_grad():
        while not over:
            actions.append(int(Categorical(logits=policy(torch.tensor(states[-1])), validate_args=False).sample()))
            state, over = world.step(actions[-1])
            states.append(state)
    return torch.tensor(states[:-1]), torch.tensor(actions), len(actions)


def returns(n: int, discount: float = 0.99) -> torch.Tensor:
    """What each of n steps is followed by: a reward of 1 for itself and every later one, discounted; normalised."""
    values = (1 - discount ** torch.arange(n, 0, -1)) / (1 - discount)
    return (values - values.mean()) / (values.std() + 1e-6) if n > 1 else values


def draw(path: str, lengths: list[int], limit: int) -> None:
    """Saves how long the pole stayed up, by episode."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 4.5), layout="constrained")
    axes.plot(lengths, ".", alpha=0.4, label="episode")
    window = min(25, len(lengths))
    mean = np.convolve(lengths, np.ones(window) / window, "valid")
    axes.plot(np.arange(window - 1, len(lengths)), mean, label=f"mean of {window}")
    axes.axhline(limit, color="gray", linestyle=":")
    axes.set(xlabel="episode", ylabel="steps until the pole fell")
    axes.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", default="reinforce.png", help='where the picture goes; "": none')
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    world = CartPole(np.random.default_rng(args.seed))
    policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    bar, lengths = Progress("episodes", args.episodes), []
    for episode in range(1, args.episodes + 1):
        states, actions, n = play(world, policy)
        lengths.append(n)
        loss = -(Categorical(logits=policy(states)).log_prob(actions) * returns(n)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = np.mean(lengths[-25:])
        bar.step(f"mean length {mean:.0f}")
        if episode % 100 == 0 or episode == args.episodes:
            print(
                f"episode {episode:4d}  mean length of the last {min(25, episode)}: {mean:.0f} of {world.limit} steps"
            )
    if args.picture:
        draw(args.picture, lengths, world.limit)
        print(f"learning curve: {args.picture}")


if __name__ == "__main__":
    main()
