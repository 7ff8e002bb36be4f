"""A diffusion model: a network that sees images through noise makes handwritten digits of noise."""

import math
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

from data import draw, loader, test_x, train_x

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 300
batch_size = 96
levels = 50
width = 256

clearness = torch.cos(torch.linspace(0, 1.57, levels + 1)) ** 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.level = nn.Embedding(levels + 1, width)
        self.linear = nn.Linear(width, width)

    def forward(self, h, t):
        return h + self.linear(F.silu(h + self.level(t)))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.input = nn.Linear(64, width)
        self.blocks = nn.ModuleList([Block() for _ in range(3)])
        self.output = nn.Linear(width, 64)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(self, x, t):
        h = self.input(x)
        for block in self.blocks:
            h = block(h, t)
        return self.output(F.silu(h))


def blur(images, noise, t):
    c = clearness[t].unsqueeze(-1)
    return c.sqrt() * images + (1 - c).sqrt() * noise


def loss_fn(model, images):
    t = torch.randint(1, levels + 1, (len(images),))
    x = blur(images, torch.randn_like(images), t)
    return F.mse_loss(model(x, t), images)


def train(model):
    batches = loader(batch_size)
    steps = epochs * len(batches)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)

    def rate(step):
        if step < 100:
            return step / 100
        return 0.5 * (1 + math.cos(math.pi * (step - 100) / (steps - 100)))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    for epoch in range(epochs):
        for images, _ in batches:
            optimizer.zero_grad()
            loss = loss_fn(model, 2 * images - 1)
            loss.backward()
            optimizer.step()
            scheduler.step()
        if (epoch + 1) % 50 == 0:
            print(f"epoch {epoch + 1:3d}  loss {loss.item():.4f}")


@torch.no_grad()
def sample(model, n):
    x = torch.randn(n, 64)
    for level in range(levels, 0, -1):
        t = torch.full((n,), level)
        c = clearness[level]
        images = model(x, t)
        noise = (x - c.sqrt() * images) / (1 - c).sqrt()
        x = blur(images, noise, t - 1)
    return x


def distance(x, y):
    return (2 * torch.cdist(x, y).mean() - torch.cdist(x, x).mean() - torch.cdist(y, y).mean()).item()


if __name__ == "__main__":
    model = Denoiser()
    images, real = 2 * train_x - 1, 2 * test_x - 1
    before = distance(sample(model, 357), real)
    train(model)
    after = distance(sample(model, 357), real)
    noise = torch.randn_like(real)
    pixels = distance((images.mean(dim=0) + images.std(dim=0) * noise).clamp(-1, 1), real)
    itself = distance(images[:357], real)
    draw((sample(model, 8) + 1) / 2)
    print(
        f"distance to test images: {after:.3f} trained, {before:.3f} untrained, "
        f"{pixels:.3f} pixel by pixel, {itself:.3f} training images"
    )
    assert after < min(before, pixels), "the network has learned nothing"
