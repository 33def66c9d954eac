"""Builds the e5 tokenizer (sentencepiece unigram) as a `tokenizers` tokenizer, and cuts vocabularies.

Knows nothing of weights or ONNX.
"""

import lzma
from collections.abc import Sequence
from importlib import resources

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, processors
from tokenizers import pre_tokenizers as pre

Pieces = Sequence[tuple[str, float]]

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
"""The first four pieces of the vocabulary, in the order of their ids."""
MARK = "▁"
"""What sentencepiece writes for a space."""
CHARSMAP = "nmt_nfkc_e5.charsmap.xz"


def charsmap() -> bytes:
    """The normaliser's rules, compiled; `training/charsmap.py` says how the file was made."""
    packed = resources.files("tailrace.models").joinpath("data", CHARSMAP).read_bytes()
    return lzma.decompress(packed)


def build_tokenizer(pieces: Pieces, *, segments: bool) -> Tokenizer:
    """The tokenizer over these pieces; `segments` gives the second half of a pair the type id 1."""
    tokenizer = Tokenizer(models.Unigram(list(pieces), unk_id=SPECIAL.index("<unk>")))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(charsmap()), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    space = pre.Metaspace(replacement=MARK, prepend_scheme="always")
    tokenizer.pre_tokenizer = pre.Sequence([pre.WhitespaceSplit(), space])
    tokenizer.decoder = decoders.Metaspace(replacement=MARK, prepend_scheme="always")
    second = 1 if segments else 0
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair=f"<s> $A </s> </s>:{second} $B:{second} </s>:{second}",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    special = [AddedToken(name, special=True, normalized=False) for name in SPECIAL]
    if any(piece == "<mask>" for piece, _ in pieces):
        special.append(AddedToken("<mask>", special=True, normalized=False, lstrip=True))
    tokenizer.add_special_tokens(special)
    return tokenizer


def kept_pieces(pieces: Pieces) -> list[int]:
    """Ids of the pieces a Korean and English reader needs: Hangul, Latin, digits, symbols, emoji."""
    return [
        number
        for number, (piece, _) in enumerate(pieces)
        if number < len(SPECIAL) or _is_kept(piece.replace(MARK, ""))
    ]


def _is_kept(text: str) -> bool:
    for char in text:
        code = ord(char)
        if _is_hangul(code):
            continue
        if code < 0x250:
            # Accented letters: single ones only, so that a foreign word still falls into letters.
            if code >= 0x80 and char.isalpha() and len(text) != 1:
                return False
            continue
        if char.isalpha():
            return False
    return True


def _is_hangul(code: int) -> bool:
    return 0xAC00 <= code <= 0xD7A3 or 0x1100 <= code <= 0x11FF or 0x3130 <= code <= 0x318F
