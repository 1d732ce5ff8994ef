"""Tables that fit the terminal without leaving anything out, and tab-separated values."""

import io

from rich.cells import cell_len
from rich.console import Console

from zhen.viewer.comparison_text import Head, Table, as_tsv, folded, print_for_people

PARTS = ("seen", "heldout", "handwritten")
HEADS = [
    Head("run", "run"),
    Head("optimizer.lr", "lr", True),
    *(Head(f"test/{part}/bleu", f"{part}\nBLEU", True) for part in PARTS),
    Head("state", "state"),
    *(Head(f"test/{part}/chrf", f"{part}\nchrF", True) for part in PARTS),
    Head("parameters", "parameters", True),
    Head("reason"),
]  # fmt: skip
SCORES = ["12.34"] * 3, ["56.78"] * 3
ROWS = [
    [f"真真/2026113{i}-151234", "0.001", *SCORES[0], "finished", *SCORES[1], "1234567", "a\tb\nc"]
    for i in range(3)
]
SHOWN = [[*row[:9], "1,234,567", row[10]] for row in ROWS]
TABLE = Table("Runs [1]", HEADS, ROWS, SHOWN, frozenset({(1, 2)}))


def printed(width: int, table: Table = TABLE) -> list[str]:
    file = io.StringIO()
    print_for_people([table], Console(file=file, width=width, highlight=False))
    return file.getvalue().splitlines()


def test_a_wide_terminal_has_one_part() -> None:
    lines = printed(200)
    assert lines[0] == "Runs [1]" and len(lines) == 1 + 2 + 3
    assert lines[3].split() == [*ROWS[0][:9], "1,234,567"]


def test_eighty_columns_have_all_in_parts_that_begin_with_the_run() -> None:
    lines = printed(80)
    assert max(map(cell_len, lines)) <= 80
    assert (
        sum(line.startswith("真真/20261131-151234") for line in lines)
        == len(folded(TABLE, 80))
        == 2
    )
    text = "\n".join(lines)
    assert text.count("12.34") == text.count("56.78") == 9 and text.count("1,234,567") == 3
    assert "…" not in text


def test_a_narrow_terminal_has_a_column_in_each_part() -> None:
    assert folded(TABLE, 10) == [[0, i] for i in range(1, 10)]


def test_what_looks_like_markup_is_text() -> None:
    heads = [Head("run", "run"), Head("betas", "[bold]")]
    rows = [["a", "[0.9, 0.98]"], ["b", "[red]x[/red]"]]
    assert [line.split() for line in printed(80, Table("", heads, rows, rows))] == [
        ["run", "[bold]"],
        ["a", "[0.9,", "0.98]"],
        ["b", "[red]x[/red]"],
    ]


def test_tab_separated_values_have_every_column_and_a_line_for_each_row() -> None:
    lines = as_tsv(TABLE).splitlines()
    assert lines[0].split("\t") == [head.key for head in HEADS]
    assert lines[1].split("\t") == [*ROWS[0][:10], "a b c"]
    assert len(lines) == 4
