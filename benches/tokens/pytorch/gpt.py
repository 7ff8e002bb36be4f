"""A small GPT learns to write like Shakespeare, character by character."""

import math
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
context = 64
width = 128
n_layers = 4
n_heads = 4
batch_size = 12
learning_rate = 0.001

torch.manual_seed(1337)
text = open("shakespeare.txt").read()
letters = sorted(set(text))
places = {letter: i for i, letter in enumerate(letters)}
ids = torch.tensor([places[letter] for letter in text])
border = len(ids) - len(ids) // 10
train_ids, test_ids = ids[:border], ids[border:]
print(f"{len(ids):,} characters, {len(letters)} of them different")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1 = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, n_heads, bias=False, batch_first=True)
        self.ln2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, h, mask):
        x = self.ln1(h)
        h = h + self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]
        return h + self.mlp(self.ln2(h))


class GPT(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.layers = nn.ModuleList([Block() for _ in range(n_layers)])
        self.ln = nn.LayerNorm(width)
        self.apply(self._init_weights)
        for name, parameter in self.named_parameters():
            if name.endswith("out_proj.weight") or name.endswith("mlp.2.weight"):
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * n_layers))

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.MultiheadAttention):
            nn.init.normal_(module.in_proj_weight, std=0.02)

    def forward(self, ids):
        length = ids.shape[1]
        mask = torch.triu(torch.ones(length, length, dtype=torch.bool), diagonal=1)
        h = self.tokens(ids) + self.positions(torch.arange(length))
        for layer in self.layers:
            h = layer(h, mask)
        return self.ln(h) @ self.tokens.weight.T


def batch(ids, n):
    starts = torch.randint(len(ids) - context, (n, 1))
    places = starts + torch.arange(context)
    return ids[places], ids[places + 1]


def loss_fn(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


@torch.no_grad()
def test_loss(model):
    model.eval()
    return loss_fn(model, *batch(test_ids, 100)).item()


def train(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    for step in range(steps):
        model.train()
        x, y = batch(train_ids, batch_size)
        optimizer.zero_grad()
        loss = loss_fn(model, x, y)
        loss.backward()
        optimizer.step()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1:5,}  loss {loss.item():.4f}  test loss {test_loss(model):.4f}")


@torch.no_grad()
def write(model, n, start):
    model.eval()
    window = torch.tensor([[places[letter] for letter in start.rjust(context)]])
    written = start
    for _ in range(n):
        probabilities = F.softmax(model(window)[:, -1], dim=-1)
        next_id = torch.multinomial(probabilities, 1)
        written += letters[next_id.item()]
        window = torch.cat([window[:, 1:], next_id], dim=1)
    return written


def frequency_loss(ids, targets, n):
    counts = ids.bincount(minlength=n) + 1
    return -(counts / counts.sum()).log()[targets].mean().item()


if __name__ == "__main__":
    model = GPT(len(letters))
    before = test_loss(model)
    train(model)
    after = test_loss(model)
    frequencies = frequency_loss(train_ids, test_ids, len(letters))
    print(write(model, 400, "\nHAMLET.\n"))
    print(
        f"test loss: {after:.3f} trained, {before:.3f} untrained, {frequencies:.3f} by the frequency of letters"
    )
    assert after < min(before, frequencies), "the network has learned nothing"
