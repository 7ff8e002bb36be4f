"""A network that grows while it is trained."""

import math
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300
width = 12

torch.manual_seed(0)


def spirals(n):
    labels = torch.arange(n) % 2
    r = torch.rand(n) * 0.9 + 0.1
    angle = 18.85 * r + math.pi * labels
    points = torch.stack([r * torch.cos(angle), r * torch.sin(angle)], dim=1)
    return points + 0.02 * torch.randn(n, 2), labels


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.outer = nn.Linear(width, width)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, h):
        return h + self.outer(F.relu(self.inner(h)))


class Growing(nn.Module):
    def __init__(self):
        super().__init__()
        self.input = nn.Linear(2, width)
        self.blocks = nn.ModuleList()
        self.output = nn.Linear(width, 2)

    def forward(self, x):
        h = F.relu(self.input(x))
        for block in self.blocks:
            h = block(h)
        return self.output(h)


def rate(step):
    if step < 50:
        return step / 50
    return 0.5 * (1 + math.cos(math.pi * (step - 50) / (steps - 50)))


def train(model, x, y):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        scheduler.step()


@torch.no_grad()
def loss(model, x, y):
    return F.cross_entropy(model(x), y).item()


@torch.no_grad()
def accuracy(model, x, y):
    return (model(x).argmax(dim=1) == y).float().mean().item()


def grow(model, training, test):
    before = loss(model, *training)
    model.blocks.append(Block())
    between = loss(model, *training)
    train(model, *training)
    after = loss(model, *training)
    print(f"{len(model.blocks)} blocks  loss {after:.4f}  test accuracy {accuracy(model, *test):.1%}")
    assert abs(between - before) < 1e-6, f"a new block changes the loss from {before} to {between}"
    assert after < before, f"the loss is {after} after a growth, {before} before"


if __name__ == "__main__":
    training, test = spirals(600), spirals(600)
    model = Growing()
    before = accuracy(model, *test)
    train(model, *training)
    between = accuracy(model, *test)
    for _ in range(4):
        grow(model, training, test)
    after = accuracy(model, *test)
    print(
        f"test accuracy: {after:.1%} grown, {between:.1%} without blocks, "
        f"{before:.1%} untrained, {0.5:.1%} always the same class"
    )
    assert after > max(between, before, 0.5), "nothing is gained by growing"
