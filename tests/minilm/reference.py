"""Compares the tokens and vectors that vectors.shf saved with those of NumPy in f64, from the same weights.

    reference.py MODEL FOLDER

MODEL has model.safetensors, config.json and vocab.txt; FOLDER ids.json and vectors.json. Prints the largest differences. The
word pieces are the longest ones that the vocabulary has, of lower-case ASCII (Devlin et al., 2019).
"""

import json
import math
import re
import struct
import sys
from pathlib import Path

import numpy as np


def main():
    model, folder = Path(sys.argv[1]), Path(sys.argv[2])
    texts = re.search(r"\(def texts(.*?)\]\)", (Path(__file__).parent / "vectors.shf").read_text(), re.DOTALL)[1]
    texts = re.findall(r'"([^"]*)"', texts)
    ids = np.array(json.loads((folder / "ids.json").read_text())).astype(int)
    vocabulary = {piece: i for i, piece in enumerate((model / "vocab.txt").read_text().splitlines())}
    pieces = [word_pieces(text, vocabulary) for text in texts]
    for row, expected in zip(ids.tolist(), pieces, strict=True):
        if row != expected + [0] * (len(row) - len(expected)):
            sys.exit(f"the tokens are {row}, not {expected}")
    config = json.loads((model / "config.json").read_text())
    expected = embed(ids, load(model / "model.safetensors"), config)
    found = np.array(json.loads((folder / "vectors.json").read_text()))
    print(f"vectors differ by {np.abs(found - expected).max():.2e}")


def word_pieces(text, vocabulary):
    ids = [vocabulary["[CLS]"]]
    for word in re.findall(r"[a-z0-9]+|[^\sa-z0-9]", text.lower()):
        start = 0
        while start < len(word):
            marks = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if marks + word[start:end] in vocabulary), None)
            if end is None:
                raise ValueError(f"{word} has no pieces")
            ids.append(vocabulary[marks + word[start:end]])
            start = end
    return ids + [vocabulary["[SEP]"]]


def load(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            start, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[name] = np.frombuffer(data[start:end], "<f4").reshape(entry["shape"]).astype(np.float64)
    return tensors


def embed(ids, w, config):
    """A vector of length 1 for each row of ids (sentence-transformers: the mean over its places)."""
    heads = config["num_attention_heads"]
    batch, time = ids.shape
    mask = ids != 0
    erf = np.vectorize(math.erf)

    def norm(x, name):
        mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) / np.sqrt(var + 1e-12) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def dense(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def attention(x, name):
        q, k, v = (
            dense(x, f"{name}.self.{part}").reshape(batch, time, heads, -1).swapaxes(1, 2)
            for part in ("query", "key", "value")
        )
        scores = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1])
        scores = np.where(mask[:, None, None, :], scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        joined = (weights @ v).swapaxes(1, 2).reshape(batch, time, -1)
        return norm(x + dense(joined, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][:time]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for i in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{i}"
        x = attention(x, f"{name}.attention")
        inner = dense(x, f"{name}.intermediate.dense")
        inner = inner * 0.5 * (1 + erf(inner / np.sqrt(2)))
        x = norm(x + dense(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
    mean = (x * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    return mean / np.linalg.norm(mean, axis=1, keepdims=True)


if __name__ == "__main__":
    main()
