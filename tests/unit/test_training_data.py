"""The texts in training/data: well-formed, and none that training reads is one that measures."""

import json
import re
import unicodedata
from pathlib import Path

import pytest

DATA = Path(__file__).parents[2] / "training" / "data"
TEXT_FILES = sorted(path.name for path in DATA.glob("*.jsonl"))
TOPICS = json.loads((DATA / "topics_paraphrases.json").read_text("utf-8"))
WORDINGS = json.loads((DATA / "topic_wordings.json").read_text("utf-8"))
KNOWN = {*TOPICS["topics"], *TOPICS["other"], *WORDINGS["other"]}
FIRST_WRITING = {"reviews.jsonl", "other_topics.jsonl", "no_topic.jsonl"}


def rows(name):
    lines = (DATA / name).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def normalised(text):
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).lower()) or text.strip()


def grams(text):
    plain = normalised(text)
    return {plain[at : at + 4] for at in range(len(plain) - 3)}


def test_there_are_texts():
    assert len(TEXT_FILES) >= 7


@pytest.mark.parametrize("name", TEXT_FILES)
def test_every_row_is_well_formed(name):
    for row in rows(name):
        assert row["text"].strip(), row
        assert row["split"] in {"train", "dev", "zeroshot", "check"}, row
        assert len(set(row["topics"])) == len(row["topics"]), row
        assert {*row["topics"], *row.get("maybe", [])} <= KNOWN, row
        assert not set(row["topics"]) & set(row.get("maybe", [])), row
        assert row["main"] in row["topics"] if row["topics"] else row["main"] is None, row
        if name not in FIRST_WRITING:
            assert row["source"], row
            assert row["lang"] in {"ko", "en", "mixed"}, row


def test_no_text_stands_twice_in_the_second_writing():
    texts = [
        normalised(row["text"])
        for name in TEXT_FILES
        if name not in FIRST_WRITING
        for row in rows(name)
    ]
    assert len(set(texts)) == len(texts)


def test_training_reads_nothing_that_measures():
    measuring = {
        normalised(row["text"])
        for name in TEXT_FILES
        for row in rows(name)
        if row["split"] != "train"
    }
    read = {
        normalised(row["text"])
        for name in TEXT_FILES
        for row in rows(name)
        if row["split"] == "train"
    }
    assert not measuring & read


def test_the_second_writing_holds_no_near_copy_of_a_measuring_text():
    measuring = [
        grams(row["text"])
        for name in FIRST_WRITING
        for row in rows(name)
        if row["split"] != "train"
    ]
    for name in set(TEXT_FILES) - FIRST_WRITING:
        for row in rows(name):
            own = grams(row["text"])
            for other in measuring:
                shorter = min(len(own), len(other))
                assert shorter < 4 or len(own & other) < shorter / 2, row["text"]


def test_no_wording_that_measures_is_trained_on():
    for topic, entry in TOPICS["topics"].items():
        more = WORDINGS["topics"][topic]
        trained = {normalised(text) for text in (entry["base"], *more["ko"], *more["en"])}
        trained |= {normalised(text) for lang in ("ko", "en") for text in entry[lang][:2]}
        for lang in ("ko", "en"):
            assert normalised(entry[lang][2]) not in trained, topic


def test_trades_that_measure_have_no_topic_in_the_second_writing():
    groups = {entry["group"] for entry in WORDINGS["other"].values()}
    assert not groups & {"shop", "book"}
