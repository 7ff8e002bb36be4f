"""Handwritten digits by a network of one hidden layer."""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

from data import loader, most_frequent, test_x, test_y

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 20


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(64, 64)
        self.output = nn.Linear(64, 10)

    def forward(self, x):
        return self.output(F.relu(self.hidden(x)))


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(dim=1) == y).float().mean().item()


def train(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for epoch in range(epochs):
        model.train()
        for x, y in loader(48):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1:2d}  loss {loss.item():.4f}  test accuracy {accuracy(model, test_x, test_y):.1%}")


if __name__ == "__main__":
    model = MLP()
    before = accuracy(model, test_x, test_y)
    train(model)
    after = accuracy(model, test_x, test_y)
    print(
        f"test accuracy: {after:.1%} trained, {before:.1%} untrained, "
        f"{most_frequent:.1%} always the most frequent digit"
    )
    assert after > 3 * max(before, most_frequent), "the network has learned nothing"
