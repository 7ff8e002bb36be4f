"""A tiny GPT-2 for the test of examples/gpt2: weights under their published names, and the logits that they give.

    reference.py FOLDER [--torch]

writes FOLDER/model.safetensors, config.json, ids.json (a text of 17), logits.json (its logits) and likeliest.json (its first 5 and,
eight times, what is likeliest to follow). The reference is NumPy in f64; with --torch it is `transformers`, whose own model is
saved. Both are of the same size: 2 layers, 4 heads, width 32.
"""

import argparse
import json
import struct
from pathlib import Path

import numpy as np

CONFIG = {"n_layer": 2, "n_head": 4, "n_embd": 32, "n_positions": 24, "n_ctx": 24, "vocab_size": 101}
LENGTH = 17


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--torch", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    ids = np.random.default_rng(1).integers(0, CONFIG["vocab_size"], LENGTH).tolist()
    if options.torch:
        logits = of_transformers(options.folder)
    else:
        weights = draw(np.random.default_rng(0))
        save(options.folder / "model.safetensors", weights)
        (options.folder / "config.json").write_text(json.dumps(CONFIG))
        exact = {name: w.astype(np.float64) for name, w in weights.items()}
        logits = lambda ids: forward(ids, exact)
    likeliest = ids[:5]
    for _ in range(8):
        likeliest.append(int(logits(likeliest)[-1].argmax()))
    for name, value in {"ids": ids, "logits": logits(ids).tolist(), "likeliest": likeliest}.items():
        (options.folder / f"{name}.json").write_text(json.dumps(value))


def draw(rng):
    """Random weights, larger than those of a start, so that every one of them counts."""
    width, layers = CONFIG["n_embd"], CONFIG["n_layer"]

    def normal(*shape):
        return rng.normal(size=shape, scale=0.3).astype(np.float32)

    weights = {"wte.weight": normal(CONFIG["vocab_size"], width), "wpe.weight": normal(CONFIG["n_positions"], width)}
    norms = [f"h.{i}.{ln}" for i in range(layers) for ln in ("ln_1", "ln_2")] + ["ln_f"]
    for name in norms:
        weights |= {f"{name}.weight": 1 + normal(width), f"{name}.bias": normal(width)}
    sizes = {"attn.c_attn": (1, 3), "attn.c_proj": (1, 1), "mlp.c_fc": (1, 4), "mlp.c_proj": (4, 1)}
    for i in range(layers):
        for name, (inputs, outputs) in sizes.items():
            weights[f"h.{i}.{name}.weight"] = normal(inputs * width, outputs * width)
            weights[f"h.{i}.{name}.bias"] = normal(outputs * width)
        # The published file has this mask of each layer, which is no weight.
        n = CONFIG["n_positions"]
        weights[f"h.{i}.attn.bias"] = np.tril(np.ones((1, 1, n, n), np.float32))
    return weights


def forward(ids, w):
    """The logits [time vocabulary] of a text (Radford et al., 2019)."""
    heads, time = CONFIG["n_head"], len(ids)

    def norm(x, name):
        mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) / np.sqrt(var + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x, name):
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    def gelu(x):
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    def attention(x, name):
        parts = np.split(linear(x, f"{name}.c_attn"), 3, axis=-1)
        q, k, v = (part.reshape(time, heads, -1).swapaxes(0, 1) for part in parts)
        scores = q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1])
        scores = np.where(np.tril(np.ones((time, time), bool)), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return linear((weights @ v).swapaxes(0, 1).reshape(time, -1), f"{name}.c_proj")

    h = w["wte.weight"][ids] + w["wpe.weight"][:time]
    for i in range(CONFIG["n_layer"]):
        h = h + attention(norm(h, f"h.{i}.ln_1"), f"h.{i}.attn")
        h = h + linear(gelu(linear(norm(h, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")), f"h.{i}.mlp.c_proj")
    return norm(h, "ln_f") @ w["wte.weight"].T


def save(path, tensors):
    """Writes f32 tensors in the format safetensors: the header's length, the header, the bytes."""
    header, start = {}, 0
    for name, tensor in tensors.items():
        end = start + tensor.nbytes
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    data = b"".join(np.ascontiguousarray(tensor).tobytes() for tensor in tensors.values())
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def of_transformers(folder):
    """Saves a model of `transformers` with its weights enlarged; a function that gives its logits."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(**CONFIG, attn_pdrop=0, embd_pdrop=0, resid_pdrop=0)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    model.save_pretrained(folder)

    @torch.no_grad()
    def logits(ids):
        return model(torch.tensor(ids)[None]).logits[0].numpy()

    return logits


if __name__ == "__main__":
    main()
