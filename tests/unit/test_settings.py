"""Configuration: all mistakes at once, with their paths, and who overrides whom."""

from pathlib import Path
from typing import Any

import pytest

from tailrace.apps.review.settings import BoxSettings
from tailrace.apps.review.topics import load_topics
from tailrace.serve.settings import BadConfiguration, load


def write(folder: Path, text: str) -> Path:
    file = folder / "box.toml"
    file.write_text(text, encoding="utf-8")
    return file


def mistakes(file: Path | None = None, **more: Any) -> dict[str, str]:
    with pytest.raises(BadConfiguration) as caught:
        load(BoxSettings, file, **{"environ": {}, **more})
    return dict(caught.value.mistakes)


def test_without_file_and_environment_the_defaults_are_the_seeds_box() -> None:
    box = load(BoxSettings, environ={})
    assert box.doors.limited.seats(99) == 4
    assert box.doors.queue.seats(99) == 20
    assert (box.lane.batch.items_max, box.lane.batch.window_ms) == (8, 25.0)
    assert box.server.host == "127.0.0.1"
    assert box.review.text_max_chars == 2000


def test_all_mistakes_are_told_at_once_with_their_paths(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        """
        [server]
        port = 99999
        colour = "red"
        [lane]
        slots = 0
        [lane.batch]
        items_max = "many"
        [doors.limited]
        policies = [ { kind = "waiting-room", seats = -1 }, { kind = "magic" } ]
        [nonsense]
        x = 1
        """,
    )
    found = mistakes(file)
    assert {
        "server.port",
        "server.colour",
        "lane.slots",
        "lane.batch.items_max",
        "nonsense",
    } <= set(found)
    assert any(path.startswith("doors.limited.policies.0") for path in found)
    assert any(path.startswith("doors.limited.policies.1") for path in found)
    assert found["server.colour"] == "unknown setting"
    assert "99999" in found["server.port"]


def test_the_environment_overrides_the_file_and_the_command_line_overrides_both(
    tmp_path: Path,
) -> None:
    file = write(tmp_path, "[server]\nport = 1\nbody_max_bytes = 2048\n[lane]\nslots = 2\n")
    environ = {"TAILRACE__SERVER__PORT": "2", "TAILRACE__LANE__SLOTS": "3", "OTHER": "9"}
    box = load(BoxSettings, file, environ=environ, overrides={"server.port": 4})
    assert box.server.port == 4
    assert box.lane.slots == 3
    assert box.server.body_max_bytes == 2048


def test_an_override_that_was_not_given_changes_nothing() -> None:
    box = load(
        BoxSettings, environ={"TAILRACE__SERVER__PORT": "2"}, overrides={"server.port": None}
    )
    assert box.server.port == 2


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("TAILRACE__LANE__BATCH__WINDOW_MS", "50", lambda box: box.lane.batch.window_ms == 50.0),
        ("TAILRACE__MODEL__SOURCE", "dir:/models/x", lambda box: box.model.source.endswith("x")),
        ("TAILRACE__NAIVE__ENABLED", "false", lambda box: box.naive.enabled is False),
        (
            "TAILRACE__DOORS__QUEUE__POLICIES",
            '[{"kind": "waiting-room", "seats": 3}]',
            lambda box: box.doors.queue.seats(99) == 3,
        ),
        ("tailrace__server__port", "5", lambda box: box.server.port == 8000),
    ],
)
def test_a_value_from_the_environment_is_json_where_it_is_json(
    name: str, value: str, read: Any
) -> None:
    assert read(load(BoxSettings, environ={name: value}))


@pytest.mark.parametrize(
    ("name", "value", "path"),
    [
        ("TAILRACE__SERVER__PROT", "1", "server.prot"),
        ("TAILRACE__SERVER", "1", "server"),
        ("TAILRACE__SERVER__PORT__X", "1", "server.port"),
        ("TAILRACE__", "1", "(top)"),
        ("TAILRACE__LANE__SLOTS", "[" * 100_000, "lane.slots"),
        ("TAILRACE__LANE__SLOTS", "9" * 5000, "lane.slots"),
    ],
)
def test_a_mistake_in_the_environment_is_told_like_any_other(
    name: str, value: str, path: str
) -> None:
    assert path in mistakes(environ={name: value})


@pytest.mark.parametrize("number", ["inf", "-inf", "nan"])
@pytest.mark.parametrize(
    "path",
    [
        "server.drain_grace_s",
        "lane.run_max_s",
        "lane.batch.window_ms",
        "review.weak_below",
        "tickets.keep_s",
    ],
)
def test_a_number_that_is_none_is_a_mistake(tmp_path: Path, path: str, number: str) -> None:
    table, name = path.rsplit(".", 1)
    assert path in mistakes(write(tmp_path, f"[{table}]\n{name} = {number}\n"))


@pytest.mark.parametrize("text", ["[server\n", "port = ", "\x00", "[server]\nport = 1\nport = 2\n"])
def test_a_file_that_is_no_toml_is_told_with_its_name(tmp_path: Path, text: str) -> None:
    file = write(tmp_path, text)
    assert str(file) in mistakes(file)


def test_a_missing_file_a_folder_and_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    assert mistakes(tmp_path / "no.toml")[str(tmp_path / "no.toml")] == "there is no such file"
    assert str(tmp_path) in mistakes(tmp_path)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    assert str(tmp_path / "bytes.toml") in mistakes(tmp_path / "bytes.toml")


def test_settings_cannot_be_changed_afterwards() -> None:
    box = load(BoxSettings, environ={})
    with pytest.raises(ValueError, match="frozen"):
        box.server.port = 1  # type: ignore[misc]


def test_the_resolved_settings_can_be_read_back() -> None:
    box = load(BoxSettings, environ={})
    assert BoxSettings.model_validate_json(box.model_dump_json()) == box


def test_topics_of_ones_own_need_no_training_and_mistakes_in_them_have_paths(
    tmp_path: Path,
) -> None:
    file = tmp_path / "topics.json"
    file.write_text('{"a": "주차", "b": "맛"}', encoding="utf-8")
    assert load_topics(file).ids == ("a", "b")
    for text, path in (
        ("[]", "review.topics"),
        ("{}", "review.topics"),
        ("{", "review.topics"),
        ('{"a": ""}', "review.topics.a"),
        ('{"a": 3}', "review.topics.a"),
        ('{"a": "%s"}' % ("x" * 201), "review.topics.a"),
    ):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(BadConfiguration) as caught:
            load_topics(file)
        assert path in dict(caught.value.mistakes)
    with pytest.raises(BadConfiguration):
        load_topics(tmp_path / "missing.json")
    file.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(BadConfiguration):
        load_topics(file)


def test_other_topics_have_another_fingerprint(tmp_path: Path) -> None:
    one, two = tmp_path / "1.json", tmp_path / "2.json"
    one.write_text('{"a": "x", "b": "y"}')
    two.write_text('{"b": "y", "a": "x"}')
    prints = {load_topics(file).fingerprint for file in (one, two, None)}
    assert len(prints) == 3
