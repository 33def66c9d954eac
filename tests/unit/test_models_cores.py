"""Usable cores: affinity cut to the cgroup's quota."""

import os
from pathlib import Path

import pytest

from tailrace.models.cores import cpu_quota, usable_cores


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2, 3})


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_without_a_quota_the_affinity_counts(tmp_path: Path, four_cores: None) -> None:
    write(tmp_path / "cpu.max", "max 100000\n")
    assert cpu_quota(tmp_path, tmp_path / "none") is None
    assert usable_cores(tmp_path, tmp_path / "none") == 4


def test_a_quota_of_version_2_cuts(tmp_path: Path, four_cores: None) -> None:
    write(tmp_path / "cpu.max", "250000 100000\n")
    assert cpu_quota(tmp_path, tmp_path / "none") == 2.5
    assert usable_cores(tmp_path, tmp_path / "none") == 2


def test_a_quota_of_version_1_cuts(tmp_path: Path, four_cores: None) -> None:
    write(tmp_path / "cpu/cpu.cfs_quota_us", "300000\n")
    write(tmp_path / "cpu/cpu.cfs_period_us", "100000\n")
    assert usable_cores(tmp_path, tmp_path / "none") == 3


def test_version_1_says_no_quota_with_minus_one(tmp_path: Path, four_cores: None) -> None:
    write(tmp_path / "cpu/cpu.cfs_quota_us", "-1\n")
    write(tmp_path / "cpu/cpu.cfs_period_us", "100000\n")
    assert usable_cores(tmp_path, tmp_path / "none") == 4


def test_the_tightest_group_on_the_way_up_counts(tmp_path: Path, four_cores: None) -> None:
    own = tmp_path / "own"
    own.write_text("0::/outer/inner\n")
    write(tmp_path / "outer/cpu.max", "100000 100000\n")
    write(tmp_path / "outer/inner/cpu.max", "300000 100000\n")
    assert usable_cores(tmp_path, own) == 1


def test_less_than_one_core_is_still_one(tmp_path: Path, four_cores: None) -> None:
    write(tmp_path / "cpu.max", "20000 100000\n")
    assert usable_cores(tmp_path, tmp_path / "none") == 1


def test_an_affinity_below_the_quota_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {5})
    write(tmp_path / "cpu.max", "800000 100000\n")
    assert usable_cores(tmp_path, tmp_path / "none") == 1
