"""Handwritten digits by a convolutional network: two convolutions, each with a pooling, then a linear layer."""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

from data import loader, most_frequent, test_x, test_y

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 12


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.output = nn.Linear(128, 10)

    def forward(self, x):
        x = x.view(-1, 1, 8, 8)
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.output(x.flatten(1))


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
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        print(f"epoch {epoch + 1:2d}  test accuracy {accuracy(model, test_x, test_y):.1%}")


if __name__ == "__main__":
    model = CNN()
    before = accuracy(model, test_x, test_y)
    train(model)
    after = accuracy(model, test_x, test_y)
    print(
        f"test accuracy: {after:.1%} trained, {before:.1%} untrained, "
        f"{most_frequent:.1%} always the most frequent digit"
    )
    assert after > 3 * max(before, most_frequent), "the network has learned nothing"
