"""Handwritten digits: 1,797 images of 8x8 pixels, 1,440 to train on and the rest to test."""

import torch
import numpy as np
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows = torch.from_numpy(np.loadtxt("digits.csv", delimiter=",", dtype=np.float32))
rows = rows[torch.randperm(len(rows))]
images = rows[:, :64] / 16
labels = rows[:, 64].long()

train_x, test_x = images[:1440], images[1440:]
train_y, test_y = labels[:1440], labels[1440:]

most_frequent = test_y.bincount().max().item() / len(test_y)


def loader(batch_size):
    return DataLoader(TensorDataset(train_x, train_y), batch_size=batch_size, shuffle=True, drop_last=True)


def draw(images):
    """Prints images side by side, a character for each pixel."""
    ink = (images * 10).floor().clamp(0, 9).int().view(-1, 8, 8).transpose(0, 1)
    for line in ink.tolist():
        print("  ".join("".join(" .:-=+*#%@"[i] for i in row) for row in line))
