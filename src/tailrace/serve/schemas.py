"""What the entries' bodies look like, for the OpenAPI document. Bodies are read by hand; this only tells.

A schema says what is usual, not every fault: unknown fields are let in everywhere.
"""

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
TEXTS: Schema = {"type": "array", "items": TEXT, "minItems": 1}
FLAG: Schema = {"type": ["boolean", "null"]}
COUNT: Schema = {"type": ["integer", "null"], "minimum": 1}
WORD: Schema = {"type": ["string", "null"]}
IDS: Schema = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
INPUTS: Schema = {
    "anyOf": [TEXT, IDS, {"type": "array", "items": {"anyOf": [TEXT, IDS]}, "minItems": 1}]
}
SIDE: Schema = {"enum": ["Right", "Left", "right", "left", None]}
DOCUMENTS: Schema = {
    "type": "array",
    "minItems": 1,
    "items": {
        "anyOf": [
            {"type": "string"},
            {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        ]
    },
}


def _object(required: tuple[str, ...], **properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {**properties, "model": WORD},
        "required": list(required),
    }


READING = {"truncate": FLAG, "truncation_direction": SIDE, "prompt_name": WORD}
SENTENCES = _object(("source_sentence", "sentences"), source_sentence=TEXT, sentences=TEXTS)
PAIR: Schema = {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 2}

OPENAI_EMBEDDINGS = _object(
    ("input",),
    input={"anyOf": [TEXT, TEXTS]},
    encoding_format={"enum": ["float", "base64", None]},
    dimensions=COUNT,
    input_type=WORD,
)
OPENAI_CHAT = _object(
    ("messages",),
    messages={
        "type": "array",
        "minItems": 1,
        "items": {
            "type": "object",
            "properties": {"role": TEXT, "content": {"type": ["string", "array", "null"]}},
            "required": ["role"],
        },
    },
    stream=FLAG,
)
TEI_EMBED = _object(("inputs",), inputs=INPUTS, normalize=FLAG, dimensions=COUNT, **READING)
TEI_RERANK = _object(
    ("query", "texts"),
    query=TEXT,
    texts={"type": "array", "items": {"type": "string"}, "minItems": 1},
    raw_scores=FLAG,
    return_text=FLAG,
    truncate=FLAG,
    truncation_direction=SIDE,
)
TEI_PREDICT = _object(
    ("inputs",),
    inputs={"anyOf": [TEXT, PAIR, {"type": "array", "items": PAIR, "minItems": 1}]},
    raw_scores=FLAG,
    truncate=FLAG,
)
TEI_SIMILARITY = _object(("inputs",), inputs=SENTENCES, parameters=_object((), **READING))
TEI_TOKENIZE = _object(
    ("inputs",), inputs={"anyOf": [TEXT, TEXTS]}, add_special_tokens=FLAG, prompt_name=WORD
)
TEI_DECODE = _object(
    ("ids",),
    ids={"anyOf": [IDS, {"type": "array", "items": IDS, "minItems": 1}]},
    skip_special_tokens=FLAG,
)
TEI_ANY: Schema = {"anyOf": [TEI_EMBED, TEI_RERANK, TEI_SIMILARITY]}
RERANK = _object(
    ("query", "documents"),
    query=TEXT,
    documents=DOCUMENTS,
    top_n=COUNT,
    return_documents=FLAG,
    max_tokens_per_doc=COUNT,
)
INFINITY_EMBEDDINGS = _object(
    ("input",),
    input={"anyOf": [TEXT, TEXTS]},
    encoding_format={"enum": ["float", "base64", None]},
    dimensions={"type": ["integer", "null"], "minimum": 0},
    modality={"enum": ["text", None]},
)
INFINITY_CLASSIFY = _object(("input",), input=TEXTS, raw_scores=FLAG)
ANY_RERANK: Schema = {"anyOf": [TEI_RERANK, RERANK]}


def taking(schema: Schema) -> dict[str, Any]:
    """What an entry says about itself when its body looks like that."""
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"required": True, "content": content}}
