"""What the command `leafpress` has measured, as tables: for pandas, for polars, or for plain Python."""

from __future__ import annotations

import csv
import html
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

from ._errors import InvalidOption

if TYPE_CHECKING:
    import pandas as _pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]
    import polars as _polars  # type: ignore[import-not-found,unused-ignore]

Cell = Union[int, float, str, None]

_NOT_APPLICABLE = "NA"
_WHOLE = re.compile(r"-?[0-9]+\Z")
_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?\Z")
_MOST_SHOWN = 20


class Results(Sequence[dict[str, Cell]]):
    """A table that the command wrote: rows as dicts, whose names say their units, as in bytes_held and read_p99_us.

    Numbers are numbers; a field that does not apply to a row is None.
    """

    def __init__(self, columns: Sequence[str], rows: Iterable[Sequence[Cell]], path: Optional[Path] = None) -> None:
        self.columns = tuple(columns)
        """The names of the columns."""
        self.path = path
        """The file that it is from."""
        self._rows = [tuple(row) for row in rows]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Results(self.columns, self._rows[index], self.path)
        return dict(zip(self.columns, self._rows[index]))

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        for row in self._rows:
            yield dict(zip(self.columns, row))

    def column(self, name: str) -> list[Cell]:
        """The cells of a column.

        >>> Results(["codec", "ratio"], [["lz4", 2.1], ["zstd:1", 3.4]]).column("ratio")
        [2.1, 3.4]
        """
        try:
            at = self.columns.index(name)
        except ValueError:
            raise KeyError(name) from None
        return [row[at] for row in self._rows]

    def tables(self) -> list[str]:
        """The names of the tables in the same directory, which load_results takes."""
        return _tables(self.path.parent) if self.path else []

    def to_pandas(self) -> _pandas.DataFrame:
        """A pandas DataFrame. Whole numbers of which some are missing are of the type Int64."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError('to_pandas needs pandas: pip install "leafpress-kv[pandas]"') from error
        frame = {}
        for name in self.columns:
            cells = self.column(name)
            is_whole = None in cells and any(cells) and all(cell is None or type(cell) is int for cell in cells)
            frame[name] = pandas.Series(cells, dtype="Int64") if is_whole else pandas.Series(cells)
        return pandas.DataFrame(frame)

    def to_polars(self) -> _polars.DataFrame:
        """A polars DataFrame."""
        try:
            import polars
        except ImportError as error:
            raise ImportError('to_polars needs polars: pip install "leafpress-kv[polars]"') from error
        return polars.DataFrame({name: self.column(name) for name in self.columns}, strict=False)

    def __repr__(self) -> str:
        where = f" of {self.path}" if self.path else ""
        return f"<leafpress.Results{where}: {len(self)} rows of {len(self.columns)} columns>"

    def _repr_html_(self) -> str:
        return table_html(self.columns, self._rows[:_MOST_SHOWN], len(self._rows) - _MOST_SHOWN)


def table_html(columns: Sequence[str], rows: Sequence[Sequence[Cell]], left_out: int = 0) -> str:
    """A table for notebooks, in the notebook's own colours."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{"left" if isinstance(cell, str) else "right"}">{_shown(cell)}</td>' for cell in row
        )
        + "</tr>"
        for row in rows
    )
    more = f"<p>{left_out} rows more</p>" if left_out > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _shown(cell: Cell) -> str:
    return "" if cell is None else html.escape(str(cell))


def load_results(path: Union[str, os.PathLike[str]], table: str = "summary") -> Results:
    """The results in a directory that `leafpress eval --out`, `cache --out`, `pool`, `suite`, `device`, `advise` or
    `model` wrote, or in one of its files.

    A directory may hold several tables: summary, over_time, mrc, overall and others, as Results.tables() says.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with open(f"{directory}/summary.tsv", "w") as file:
    ...         _ = file.write("codec\\tratio\\tread_p99_us\\nlz4\\t2.10\\t1.8\\nnone\\tNA\\t1.1\\n")
    ...     results = load_results(directory)
    >>> results[0]
    {'codec': 'lz4', 'ratio': 2.1, 'read_p99_us': 1.8}
    >>> results.column("ratio")
    [2.1, None]
    >>> results.to_pandas().read_p99_us.max()  # doctest: +SKIP
    1.8
    """
    path = Path(path)
    if path.is_dir():
        directory, path = path, path / f"{table}.tsv"
        if not path.exists():
            present = ", ".join(_tables(directory)) or "none"
            raise FileNotFoundError(f"{directory} has no table {table!r}: {present} of those that leafpress writes with --out")
    with open(path, encoding="utf-8", newline="") as file:
        return parse(file.read(), path)


def _tables(directory: Path) -> list[str]:
    return sorted(file.stem for file in directory.glob("*.tsv"))


def parse(text: str, path: Optional[Path] = None) -> Results:
    """The table of tab-separated text with a line of names at its head."""
    name = str(path) if path else "the table"
    lines = [line for line in csv.reader(text.splitlines(), delimiter="\t") if line]
    if not lines or len(set(lines[0])) != len(lines[0]):
        raise InvalidOption(f"{name} is not a table of results: it has no header line")
    columns, rows = lines[0], lines[1:]
    for at, row in enumerate(rows):
        if len(row) != len(columns):
            raise InvalidOption(f"{name} is damaged: row {at + 1} has {len(row)} cells, and there are {len(columns)} columns")
    cells = [_typed([row[at] for row in rows]) for at in range(len(columns))]
    return Results(columns, zip(*cells) if cells else [], path)


def _typed(cells: list[str]) -> list[Cell]:
    """The cells of a column: all whole numbers, all numbers, or all text."""
    applicable = [cell for cell in cells if cell != _NOT_APPLICABLE]
    kind: Any = str
    if all(_WHOLE.match(cell) for cell in applicable):
        kind = int
    elif all(_DECIMAL.match(cell) for cell in applicable):
        kind = float
    return [None if cell == _NOT_APPLICABLE else kind(cell) for cell in cells]
