"""GPT-2 from its published weights: the model, a step of training, and texts that it writes."""

import json
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import load_file
from tokenizers import Tokenizer


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, h, mask):
        x = self.ln_1(h)
        h = h + self.attn(x, x, x, attn_mask=mask, need_weights=False)[0]
        return h + self.mlp(self.ln_2(h))


class GPT2(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config["n_embd"]
        self.wte = nn.Embedding(config["vocab_size"], width)
        self.wpe = nn.Embedding(config["n_positions"], width)
        self.h = nn.ModuleList([Block(width, config["n_head"]) for _ in range(config["n_layer"])])
        self.ln_f = nn.LayerNorm(width)

    def forward(self, ids):
        time = ids.shape[1]
        mask = torch.triu(torch.ones(time, time, dtype=torch.bool), diagonal=1)
        h = self.wte(ids) + self.wpe(torch.arange(time))
        for block in self.h:
            h = block(h, mask)
        return self.ln_f(h) @ self.wte.weight.T


NAMES = {
    "attn.c_attn.weight": "attn.in_proj_weight",
    "attn.c_attn.bias": "attn.in_proj_bias",
    "attn.c_proj": "attn.out_proj",
    "mlp.c_fc": "mlp.0",
    "mlp.c_proj": "mlp.2",
}


def load_model(folder):
    with open(f"{folder}/config.json") as file:
        model = GPT2(json.load(file))
    state = {}
    for name, tensor in load_file(f"{folder}/model.safetensors").items():
        name = name.removeprefix("transformer.")
        if name.endswith((".attn.bias", ".attn.masked_bias")):
            continue
        if name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            tensor = tensor.T
        for theirs, ours in NAMES.items():
            name = name.replace(theirs, ours)
        state[name] = tensor
    model.load_state_dict(state)
    return model


def loss_fn(model, ids):
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


def train_step(model, optimizer, ids):
    model.train()
    optimizer.zero_grad()
    loss = loss_fn(model, ids)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


@torch.no_grad()
def generate(model, ids, count, k=40, temperature=1.0):
    model.eval()
    for _ in range(count):
        logits = model(ids)[:, -1] / temperature
        likely, places = logits.topk(k)
        choice = torch.multinomial(F.softmax(likely, dim=-1), 1)
        ids = torch.cat([ids, places.gather(1, choice)], dim=1)
    return ids


if __name__ == "__main__":
    folder, text, count = sys.argv[1:]
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    model = load_model(folder)
    ids = torch.tensor([tokenizer.encode(text).ids])
    print(tokenizer.decode(generate(model, ids, int(count))[0].tolist()))
