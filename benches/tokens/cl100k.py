"""The encoding cl100k_base of GPT-4: byte pairs joined in the order of their ranks, within pieces of text."""

import base64
import re
import sys
from functools import lru_cache
from pathlib import Path

RANKS = Path(__file__).parent / "cl100k_base.tiktoken"

# OpenAI's pattern, for a module without classes of Unicode: letters are [^\W\d_], other than letters and digits (?:[^\w]|_).
PIECES = re.compile(
    r"'(?i:[sdmt]|ll|ve|re)"
    r"|(?:[^\r\n\w]|_)?[^\W\d_]+"
    r"|\d{1,3}"
    r"| ?(?:[^\s\w]|_)+[\r\n]*"
    r"|\s*[\r\n]+"
    r"|\s+(?!\S)"
    r"|\s+"
)


@lru_cache(maxsize=None)
def ranks():
    """The number of each piece; FileNotFoundError before fetch-gpt4-ranks has run."""
    lines = RANKS.read_bytes().splitlines()
    return {base64.b64decode(piece): int(rank) for piece, rank in (line.split() for line in lines)}


def count(text):
    """The number of tokens of a text."""
    return sum(_count(piece.encode()) for piece in PIECES.findall(text))


@lru_cache(maxsize=None)
def _count(piece):
    known = ranks()
    if piece in known:
        return 1
    parts = [piece[i : i + 1] for i in range(len(piece))]
    while len(parts) > 1:
        joined = [known.get(a + b, len(known)) for a, b in zip(parts, parts[1:])]
        best = min(joined)
        if best == len(known):
            break
        at = joined.index(best)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return len(parts)


if __name__ == "__main__":
    for path in sys.argv[1:]:
        print(count(Path(path).read_text()))
