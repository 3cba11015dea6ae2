"""Does compression pay for your data, in your memory, on your device? By measurement."""

from __future__ import annotations

import contextlib
import html
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _leafpress, results
from ._errors import CodecUnavailable

if TYPE_CHECKING:
    from typing_extensions import Buffer

Size = Union[int, str]
AnyPath = Union[str, os.PathLike[str]]

_SHOWN = ("codec", "block_bytes", "ratio", "compressed_share_pct", "hit_pct", "us_per_page")
_HEADINGS = ("codec", "block bytes", "ratio", "compressed %", "hit %", "µs a page")
_MOST_SHOWN = 6


class Advice:
    """The advice that leafpress.advise returns. A notebook displays it; print() shows it as text."""

    verdict: str
    """"compress", "too_close", "do_not_compress" or "all_fits"."""
    sentence: str
    """The recommendation, as a sentence."""
    reasons: list[str]
    """The reasons."""
    cautions: list[str]
    """Caveats of the advice."""
    codec: str
    """The codec to use; "none" if compression does not pay."""
    block_bytes: int
    """The best block length."""
    share: float
    """The part of the memory for compressed pages, 0 to 1."""
    gain: float
    """The part of the time per page that the best codec saves compared with no compression, whether or not it pays;
    below 0 it loses."""
    hit_ratio: float
    """The share of accesses that need no read of the device, with the recommendation."""
    raw_hit_ratio: float
    """The same without compression."""
    us_per_page: float
    """Microseconds per page with the recommendation."""
    raw_us_per_page: float
    """The same without compression."""
    device_us: float
    """Microseconds of a read of the device."""
    pays_from_us: Optional[float]
    """Microseconds of a device read from which on some codec pays."""
    raw_memory_bytes: Optional[float]
    """Bytes of memory with equal performance without compression, if compression pays."""
    enough_memory_bytes: Optional[float]
    """Bytes of memory that suffice with compression, if it pays."""
    data_bytes: int
    """Bytes of the data."""
    memory_bytes: int
    """Bytes of the memory."""
    candidates: results.Results
    """Every codec and length of blocks that was measured, the best first."""

    def __init__(self, base: Any) -> None:
        self._base = base
        self.__dict__.update(base.fields())
        self.candidates = results.parse(base.table())

    @property
    def pays(self) -> bool:
        """Whether compression is recommended."""
        return self.verdict == "compress"

    def report(self, path: AnyPath) -> Path:
        """Write the whole report as a page of HTML, in which sizes and latencies can be changed; returns the path."""
        with tempfile.TemporaryDirectory() as directory:
            self._base.write(directory)
            return Path(shutil.copyfile(os.path.join(directory, "report.html"), path))

    def save(self, directory: AnyPath) -> Path:
        """Write summary.tsv, results.json and report.html into a directory, which is made; returns the path."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        self._base.write(directory)
        return directory

    def __str__(self) -> str:
        text: str = self._base.text()
        return text

    def __repr__(self) -> str:
        return f"<leafpress.Advice: {self.sentence}>"

    def _repr_html_(self) -> str:
        colour = "#2e8b57" if self.pays else "#b8860b"
        rows = [[_rounded(row[name]) for name in _SHOWN] for row in self.candidates[:_MOST_SHOWN]]
        table = results.table_html(_HEADINGS, rows, len(self.candidates) - len(rows))
        reasons = "".join(f"<li>{html.escape(reason)}</li>" for reason in self.reasons)
        cautions = "".join(f"<li>{html.escape(caution)}</li>" for caution in self.cautions)
        # No colours but that of the mark: the notebook's own serve, light and dark.
        return (
            f'<div style="border-left:4px solid {colour};padding-left:0.8em;max-width:60em">'
            f'<p style="font-weight:bold">{html.escape(self.sentence)}</p>{table}'
            f"<details><summary>Why</summary><ul>{reasons}</ul></details>"
            f"<details><summary>Caveats</summary><ul>{cautions}</ul></details></div>"
        )


def _rounded(cell: results.Cell) -> results.Cell:
    """A figure with as many digits as help."""
    return float(f"{cell:.3g}") if isinstance(cell, float) else cell


def advise(
    sample: Union[AnyPath, Buffer, Sequence[AnyPath], Iterable[Buffer]],
    *,
    memory: Optional[Size] = None,
    data: Optional[Size] = None,
    device: Optional[AnyPath] = None,
    device_us: Optional[float] = None,
    fio_json: Optional[AnyPath] = None,
    access: Optional[str] = None,
    access_bytes: Optional[Size] = None,
    block_bytes: Optional[Sequence[Size]] = None,
    codecs: Optional[Sequence[str]] = None,
    workers: int = 1,
    sample_bytes: Optional[Size] = None,
    quick: bool = False,
    progress: Optional[Callable[[float, str], object]] = None,
) -> Advice:
    """Measure codecs on a sample of the data, put that and the cost of a miss into a model, and recommend: a codec and
    a share of the memory, or not to compress.

    sample is what the data is like: files and directories (archives are opened), or bytes, or an iterable of bytes.

    memory is what the cache may have, by default an eighth of the data; data, what there is or will be, by default the
    sample. What a miss costs is device_us, the microseconds of a read; or device, a directory on the device, in which a
    file is made, read and removed; or fio_json, a result of fio.

    access says how pieces of access_bytes (8 KiB) are requested: "uniform", "20,80" (a fifth gets four fifths),
    "zipfian:0.99" and others, or "trace:FILE" with one page number per line. block_bytes are the lengths to choose
    from. workers is the number of concurrent readers. quick measures less. progress(share, what) is called with the
    progress.

    It takes half a minute or so, lets other threads run, and ends within a second of Ctrl-C.

    >>> advice = advise(
    ...     b"the same words " * 100_000, device_us=100, memory="64KiB", data="1MB", codecs=["lz4"], quick=True
    ... )
    >>> advice.pays, advice.codec, 0 < advice.share <= 1
    (True, 'lz4', True)
    >>> advice.candidates[0]["codec"]
    'lz4'
    """
    if not hasattr(_leafpress, "_advise"):
        raise CodecUnavailable("this build of leafpress has no advisor: it was built without its feature `advise`")
    if isinstance(codecs, str):
        codecs = codecs.split(",")
    options = {
        "memory": memory,
        "data": data,
        "device": device,
        "device_us": device_us,
        "fio_json": fio_json,
        "access": access,
        "access_bytes": access_bytes,
        "block_bytes": block_bytes,
        "codecs": codecs,
        "workers": workers,
        "sample_bytes": sample_bytes,
        "quick": quick,
    }
    with _paths(sample) as paths:
        return Advice(_leafpress._advise(paths, options, progress))


@contextlib.contextmanager
def _paths(sample: Any) -> Iterator[list[str]]:
    """Files with the sample."""
    if isinstance(sample, (str, os.PathLike)):
        yield [os.fspath(sample)]
        return
    if _is_buffer(sample):
        sample = [sample]
    pieces = list(sample)
    if all(isinstance(piece, (str, os.PathLike)) for piece in pieces):
        yield [os.fspath(piece) for piece in pieces]
        return
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "sample")
        with open(path, "wb") as file:
            for piece in pieces:
                if not _is_buffer(piece):
                    raise TypeError(f"a sample is paths or bytes, not {type(piece).__name__}")
                file.write(piece)
        yield [path]


def _is_buffer(thing: Any) -> bool:
    try:
        memoryview(thing)
    except TypeError:
        return False
    return True


