"""What is read from strips of a picture, by a child that is given so much time."""

import pytest

from tailrace.core.errors import ModelTimeout
from tailrace.models.tesseract import ReadingChild


@pytest.mark.parametrize("seconds", [0.0, -1.9])
def test_without_time_left_no_child_is_started(seconds: float) -> None:
    with pytest.raises(ModelTimeout, match="No time was left"):
        ReadingChild(["/there/is/no/such/program"]).read([], seconds)
