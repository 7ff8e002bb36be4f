"""An LSTM reads Shakespeare character by character and learns to go on."""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
width = 128
span = 50
batch_size = 32

torch.manual_seed(1)
text = open("shakespeare.txt").read()
letters = sorted(set(text))
places = {letter: i for i, letter in enumerate(letters)}
ids = torch.tensor([places[letter] for letter in text])
border = len(ids) // 10 * 9
train_ids, test_ids = ids[:border], ids[border:]


class CharLSTM(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.letters = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.output = nn.Linear(width, vocabulary)

    def forward(self, ids, state=None):
        h, state = self.lstm(self.letters(ids), state)
        return self.output(h), state


def batch(ids, n):
    starts = torch.randint(len(ids) - span, (n, 1))
    places = starts + torch.arange(span)
    return ids[places], ids[places + 1]


def loss_fn(model, x, y):
    logits, _ = model(x)
    return F.cross_entropy(logits.flatten(0, 1), y.flatten())


@torch.no_grad()
def test_loss(model):
    model.eval()
    return loss_fn(model, *batch(test_ids, 200)).item()


def train(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for step in range(steps):
        model.train()
        x, y = batch(train_ids, batch_size)
        optimizer.zero_grad()
        loss = loss_fn(model, x, y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1:5,}  loss {loss.item():.3f}  test loss {test_loss(model):.3f}")


@torch.no_grad()
def write(model, n, start):
    model.eval()
    ids = torch.tensor([[places[start]]])
    state = None
    written = []
    for _ in range(n):
        logits, state = model(ids, state)
        ids = torch.multinomial(F.softmax(logits[:, -1], dim=-1), 1)
        written.append(letters[ids.item()])
    return "".join(written)


def frequency_loss(ids, targets, n):
    counts = ids.bincount(minlength=n) + 1
    return -(counts / counts.sum()).log()[targets].mean().item()


if __name__ == "__main__":
    model = CharLSTM(len(letters))
    before = test_loss(model)
    train(model)
    after = test_loss(model)
    frequencies = frequency_loss(train_ids, test_ids, len(letters))
    print(write(model, 300, "\n"))
    print(
        f"test loss: {after:.3f} trained, {before:.3f} untrained, {frequencies:.3f} by the frequency of letters"
    )
    assert after < min(before, frequencies), "the network has learned nothing"
