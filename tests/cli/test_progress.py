"""Long commands say how far they are: a bar on a terminal, and a line every half minute in a log."""

import io

import pytest
from rich.console import Console

from idiograph.cli.progress import SECONDS_BETWEEN_LINES, Pace, progress_bar


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


def log_of(clock, steps, total=None):
    """What stands in a log after some (seconds, done, text)."""
    file = io.StringIO()
    with progress_bar("reading", total, Console(file=file), clock) as update:
        for seconds, done, text in steps:
            clock.now += seconds
            update(done, None, text)
    return file.getvalue().splitlines()


def test_a_log_gets_a_line_every_half_minute(clock):
    assert SECONDS_BETWEEN_LINES == 30
    lines = log_of(clock, [(1 if done else 0, done, None) for done in range(91)], 100)
    assert lines == [
        "reading: 30 of 100, 1.0/s, 1 min 10 s left",
        "reading: 60 of 100, 1.0/s, 40 s left",
        "reading: 90 of 100, 1.0/s, 10 s left",
    ]


def test_what_takes_less_than_half_a_minute_leaves_no_line(clock):
    assert log_of(clock, [(5, done, None) for done in range(5)], 5) == []


def test_without_a_known_end_there_are_items_and_a_rate(clock):
    assert log_of(clock, [(0, 0, None), (40, 4000, None)]) == ["reading: 4,000, 100/s"]


def test_what_an_earlier_run_did_does_not_make_this_one_faster(clock):
    assert log_of(clock, [(0, 900, None), (50, 950, None)], 1000) == ["reading: 950 of 1,000, 1.0/s, 50 s left"]


def test_the_next_part_of_the_work_has_its_own_rate(clock):
    steps = [(0, 0, "first"), (29, 1000, "first"), (1, 0, "second"), (30, 60, "second")]
    assert log_of(clock, steps, 1000) == ["second: 0 of 1,000", "second: 60 of 1,000, 2.0/s, 7 min 50 s left"]


def test_a_terminal_gets_a_bar_with_rate_and_time_left(clock):
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=120, color_system=None)
    with progress_bar("reading", 10, console, clock) as update:
        update(0)
        clock.now += 4
        update(2)
    assert "2 of 10, 30/min, 16 s left" in file.getvalue()


def test_a_pace_that_has_not_begun_says_nothing_of_time(clock):
    pace = Pace(clock)
    pace.note(0, 8)
    assert str(pace) == "0 of 8"
