"""No cell that a person opens in a spreadsheet is a formula."""

import csv
import io

import pytest

from idiograph.text.cells import PeopleCsv


def written(*cells):
    file = io.StringIO()
    PeopleCsv(file).row(cells)
    return next(csv.reader(io.StringIO(file.getvalue())))


@pytest.mark.parametrize("cell", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", " =1", "-2+3+cmd|' /C calc'!A0"])
def test_a_text_that_a_spreadsheet_would_compute_begins_with_an_apostrophe(cell):
    assert written(cell) == [f"'{cell}"]


def test_a_cell_does_not_end_its_row():
    assert written("\r=1", "a\nb") == ["' =1", "a\nb"]


def test_numbers_and_plain_texts_stay_as_they_are():
    assert written("-1.50", -2, 0.5, "Ada", "", "e-mail", "+0.25") == [
        "-1.50",
        "-2",
        "0.5",
        "Ada",
        "",
        "e-mail",
        "+0.25",
    ]
