"""Questions about scenes of handwritten digits, learned from right answers alone."""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

from data import draw, test_x, test_y, train_x, train_y

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
objects = 5

questions = [
    ("count", ("is", "a")),
    ("exists", ("is", "a")),
    ("count", ("both", ("odd",), ("above", "a"))),
    ("count", ("right-of", ("is", "a"))),
    ("exists", ("both", ("left-of", ("is", "a")), ("either", ("is", "b"), ("below", "b")))),
    ("count", ("both", ("right-of", ("odd",)), ("left-of", ("above", "a")))),
]


def behind(x):
    before = torch.cat([torch.ones_like(x[:, :1]), (1 - x).cumprod(dim=1)[:, :-1]], dim=1)
    return 1 - before


def meaning(part, scene):
    if isinstance(part, str):
        return scene[part]
    word, *parts = part
    args = [meaning(p, scene) for p in parts]
    digits = torch.arange(10)

    def those(holds):
        return (scene["seen"] * holds.float().unsqueeze(1)).sum(dim=-1)

    match word:
        case "is":
            return those(digits == args[0])
        case "odd":
            return those((digits % 2 == 1).unsqueeze(0))
        case "above":
            return those(digits > args[0])
        case "below":
            return those(digits < args[0])
        case "both":
            return args[0] * args[1]
        case "either":
            return 1 - (1 - args[0]) * (1 - args[1])
        case "right-of":
            return behind(args[0])
        case "left-of":
            return behind(args[0].flip(1)).flip(1)
        case "count":
            return args[0].sum(dim=1)
        case "exists":
            return 1 - (1 - args[0]).prod(dim=1)


def answers(seen, a, b):
    scene = {"seen": seen, "a": a.unsqueeze(1), "b": b.unsqueeze(1)}
    return torch.stack([meaning(question, scene) for question in questions], dim=1)


class Perception(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(64, 128)
        self.output = nn.Linear(128, 10)

    def forward(self, images):
        return F.softmax(self.output(F.relu(self.hidden(images))), dim=-1)


def draw_scenes(n, images, labels):
    chosen = torch.randint(len(images), (n, objects))
    a = torch.randint(10, (n,))
    b = torch.randint(10, (n,))
    right = answers(F.one_hot(labels[chosen], 10).float(), a, b)
    return images[chosen], a, b, right


test_scenes = draw_scenes(500, test_x, test_y)


@torch.no_grad()
def accuracy(model):
    model.eval()
    images, a, b, right = test_scenes
    return (answers(model(images), a, b).round() == right).float().mean().item()


@torch.no_grad()
def known(model):
    model.eval()
    return (model(test_x).argmax(dim=1) == test_y).float().mean().item()


def train(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for step in range(steps):
        model.train()
        images, a, b, right = draw_scenes(64, train_x, train_y)
        optimizer.zero_grad()
        loss = F.mse_loss(answers(model(images), a, b), right)
        loss.backward()
        optimizer.step()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1:5,}  loss {loss.item():.4f}  answers {accuracy(model):.1%}  digits {known(model):.1%}")


if __name__ == "__main__":
    model = Perception()
    before, unknown = accuracy(model), known(model)
    train(model)
    after = accuracy(model)
    images, a, b, right = test_scenes
    usual = F.one_hot(right.round().long(), objects + 1).float().mean(dim=0).max(dim=-1).values.mean().item()
    with torch.no_grad():
        given = answers(model(images), a, b)
    draw(images[0])
    print(f"a scene with the questions about a = {a[0]}, b = {b[0]}:")
    for question, answer, expected in zip(questions, given[0], right[0]):
        print(f"  {str(question):60} {answer:.2f}, should be {expected:.0f}")
    print(f"right answers: {after:.1%} trained, {before:.1%} untrained, {usual:.1%} always the usual one")
    print(f"digits known without a label: {known(model):.1%}, untrained {unknown:.1%}")
    assert after > max(before, usual), "the network has learned nothing"
