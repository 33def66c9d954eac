"""Makes the normaliser's rules that the product ships: `python -m training.charsmap --out FILE`.

The package's weight file holds the normalisation of single characters, but not of the longer sequences
that sentencepiece also knows. Both together are compiled by sentencepiece into the table that the
`tokenizers` library reads. Needs `sentencepiece`; run again only if the package's file changes.
"""

import argparse
import io
import lzma
import struct
import tempfile
from pathlib import Path

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from tailrace.models.convert import weights_path

_VALUE = (1 << 31) - 1


def compiled(**options: str) -> bytes:
    """The compiled rules of a throw-away model trained with these normaliser options."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["hello world a b c"] * 50 + ["xyz"] * 10),
        model_writer=model,
        vocab_size=20,
        model_type="unigram",
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    read = sentencepiece_model_pb2.ModelProto()
    read.ParseFromString(model.getvalue())
    return bytes(read.normalizer_spec.precompiled_charsmap)


def decompiled(table: bytes) -> dict[str, str]:
    """The rules in a compiled table: a double-array trie, then the replacements, zero-ended."""
    (size,) = struct.unpack_from("<I", table, 0)
    units = struct.unpack_from(f"<{size // 4}I", table, 4)
    texts = table[4 + size :]
    rules: dict[str, str] = {}

    def child(unit: int) -> int:
        return (unit >> 10) << ((unit & (1 << 9)) >> 6)

    waiting = [(child(units[0]), b"")]
    while waiting:
        place, key = waiting.pop()
        for byte in range(1, 256):
            at = place ^ byte
            if at >= len(units) or units[at] & ((1 << 31) | 0xFF) != byte:
                continue
            below = at ^ child(units[at])
            longer = key + bytes([byte])
            if units[at] >> 8 & 1:
                start = units[below] & _VALUE
                rules[longer.decode()] = texts[start : texts.index(b"\0", start)].decode()
            waiting.append((below, longer))
    return rules


def single_rules(path: Path) -> dict[str, str]:
    """The rules for single characters in the package's weight file."""
    content = path.read_bytes()
    (count,) = struct.unpack_from("<i", content, 44)
    (text_bytes,) = struct.unpack_from("<Q", content, 64)
    at = 72 + 4 * (count + 1) + 4 * count + text_bytes
    (rules,) = struct.unpack_from("<i", content, at)
    at += 8
    found = {}
    for _ in range(rules):
        code, length = struct.unpack_from("<IB", content, at)
        at += 5
        found[chr(code)] = "".join(map(chr, struct.unpack_from(f"<{length}I", content, at)))
        at += 4 * length
    return found


def main() -> None:
    """Write the table, compressed."""
    parser = argparse.ArgumentParser(description="Compile the tokenizer's normaliser rules.")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    usual = decompiled(compiled(normalization_rule_name="nmt_nfkc"))
    rules = {key: value for key, value in usual.items() if len(key) > 1}
    rules |= single_rules(weights_path())
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as file:
        for key, value in rules.items():
            left, right = (" ".join(f"{ord(char):X}" for char in text) for text in (key, value))
            file.write(f"{left}\t{right}\n")
        file.flush()
        table = compiled(normalization_rule_tsv=file.name)
    options.out.write_bytes(lzma.compress(table, preset=9))
    print(f"{len(rules)} rules, {len(table)} bytes compiled")


if __name__ == "__main__":
    main()
