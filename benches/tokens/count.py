#!/usr/bin/env python3
"""Prints how many tokens GPT-4 (cl100k_base) makes of Sheaf's examples, and of the same work in PyTorch, as a table.

    scripts/fetch-gpt4-ranks && benches/tokens/count.py

Comments, documentation strings and blank lines count on neither side. The programs of pytorch/ use the layers, losses and
optimisers of PyTorch wherever it has them; they run on the same data and report the same figures.
"""

import ast
import io
import sys
import tokenize
from pathlib import Path

import cl100k

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples"

# The work, the files of examples/, those of pytorch/.
WORK = [
    ("digits, data and drawing", ["digits/data.shf"], ["data.py"]),
    ("digits, a perceptron", ["digits/train.shf"], ["mlp.py"]),
    ("digits, a convolutional network", ["digits/cnn.shf"], ["cnn.py"]),
    ("digits, a VAE", ["digits/vae.shf"], ["vae.py"]),
    ("digits, diffusion", ["digits/diffusion.shf"], ["diffusion.py"]),
    ("digits, questions about scenes", ["digits/query.shf"], ["query.py"]),
    ("spirals, a network that grows", ["growing/train.shf"], ["growing.py"]),
    ("Shakespeare, an LSTM", ["lstm/train.shf"], ["lstm.py"]),
    ("Shakespeare, a GPT", ["nanogpt/model.shf", "nanogpt/text.shf", "nanogpt/train.shf"], ["gpt.py"]),
    ("GPT-2: model, training, sampling", ["gpt2/model.shf", "gpt2/generate.shf"], ["gpt2.py"]),
]


def main():
    if not cl100k.RANKS.exists():
        sys.exit("count.py: there are no ranks; run scripts/fetch-gpt4-ranks")
    print("| work | Sheaf | PyTorch | ratio |\n|---|---|---|---|")
    for name, ours, theirs in WORK:
        sheaf = sum(cl100k.count(sheaf_code((EXAMPLES / path).read_text())) for path in ours)
        torch = sum(cl100k.count(python_code((HERE / "pytorch" / path).read_text())) for path in theirs)
        print(f"| {name} | {sheaf:,} | {torch:,} | {sheaf / torch:.2f} |")


def without_blank_lines(text):
    return "".join(line.rstrip() + "\n" for line in text.splitlines() if line.strip())


def sheaf_code(text):
    """A program without comments and documentation strings."""
    kept, at = [], 0
    for start, end, kind, in_definition in strings_and_comments(text):
        if kind == "comment" or in_definition:
            kept.append(text[at:start])
            at = end
    return without_blank_lines("".join(kept) + text[at:])


def strings_and_comments(text):
    """(start, end, kind, whether it documents the definition that it follows) of each."""
    found, at, words = [], 0, []
    while at < len(text):
        start = at
        if text[at] == ";":
            at = text.find("\n", at) if "\n" in text[at:] else len(text)
            found.append((start, at, "comment", False))
        elif text[at] == '"':
            at += 1
            while text[at] != '"':
                at += 2 if text[at] == "\\" else 1
            at += 1
            found.append((start, at, "string", words[-2:-1] in (["(defn"], ["(defmacro"])))
            words.append("string")
        elif text[at].isspace():
            at += 1
        else:
            while at < len(text) and not text[at].isspace() and text[at] not in '";':
                at += 1
            words.append(text[start:at])
    return found


def python_code(text):
    """A program without comments and documentation strings."""
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            string = node.body[0]
            for i in range(string.lineno - 1, string.end_lineno):
                lines[i] = "\n"
    kept = "".join(lines)
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(kept).readline))):
        if token.type == tokenize.COMMENT:
            (row, start), (_, end) = token.start, token.end
            line = lines[row - 1]
            lines[row - 1] = line[:start] + line[end:]
    return without_blank_lines("".join(lines))


if __name__ == "__main__":
    main()
