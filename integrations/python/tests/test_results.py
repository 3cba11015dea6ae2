"""load_results: what the command has written, as tables."""

import builtins
from pathlib import Path

import pytest

import leafpress
from leafpress import Results, load_results

DATA = Path(__file__).parent / "data"


def test_an_evaluation_is_a_table():
    results = load_results(DATA / "eval")
    assert len(results) == 6 and results.columns[:3] == ("run", "workload", "threads")
    assert [row["codec"] for row in results] == ["none", "lz4", "zstd:1"] * 2
    first = results[0]
    assert type(first["threads"]) is int and type(first["qps"]) is float and first["qps"] > 0
    assert first["write_p99_us"] is None and first["landing_bytes"] == "auto" and first["bytes_held"] > 0
    assert results[-1]["workload"] == "write_only" and results.column("codec")[1] == "lz4"
    assert isinstance(results[1:3], Results) and len(results[1:3]) == 2
    with pytest.raises(KeyError):
        results.column("no such")
    with pytest.raises(IndexError):
        results[6]


def test_a_cache_run_has_several_tables():
    results = load_results(str(DATA / "cache"))
    assert results.tables() == ["mrc", "over_time", "summary"]
    assert results[0]["cache"] == "leafpress" and results[0]["hits"] == 550000
    over_time = load_results(DATA / "cache", "over_time")
    assert over_time[0]["at_seconds"] == 0.5 and type(over_time[0]["growth_bytes"]) is int
    curve = load_results(DATA / "cache" / "mrc.tsv")
    assert all(0 <= ratio <= 1 for ratio in curve.column("lru_miss_ratio"))


def test_pandas_has_numbers():
    pandas = pytest.importorskip("pandas")
    frame = load_results(DATA / "eval").to_pandas()
    assert frame.shape == (6, len(load_results(DATA / "eval").columns))
    assert frame.groupby("codec").qps.max().loc["lz4"] > 0
    assert pandas.api.types.is_float_dtype(frame.read_p99_us) and frame.read_p99_us.isna().sum() == 3
    assert pandas.api.types.is_integer_dtype(frame.bytes_held)
    whole = Results(["n"], [[1], [None]]).to_pandas()
    assert str(whole.n.dtype) == "Int64" and whole.n.isna().tolist() == [False, True]
    assert Results(["n"], [[None]]).to_pandas().shape == (1, 1) and Results(["n"], []).to_pandas().shape == (0, 1)


def test_polars_has_numbers():
    polars = pytest.importorskip("polars")
    frame = load_results(DATA / "cache").to_polars()
    assert frame["hits"].dtype == polars.Int64 and frame["hit_pct"].dtype == polars.Float64
    assert frame.filter(polars.col("cache") == "leafpress").height == 1
    assert Results(["n"], [[None], [1]]).to_polars()["n"].to_list() == [None, 1]


@pytest.mark.parametrize(("method", "package"), [("to_pandas", "pandas"), ("to_polars", "polars")])
def test_a_package_that_is_missing_is_named(monkeypatch, method, package):
    real = builtins.__import__

    def without(name, *rest, **words):
        if name == package:
            raise ImportError(name)
        return real(name, *rest, **words)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=rf"leafpress-kv\[{package}\]"):
        getattr(load_results(DATA / "eval"), method)()


def test_reports_missing_and_malformed_tables(tmp_path):
    with pytest.raises(FileNotFoundError, match="mrc, over_time, summary"):
        load_results(DATA / "cache", "no such")
    with pytest.raises(FileNotFoundError, match="none"):
        load_results(tmp_path)
    with pytest.raises(FileNotFoundError):
        load_results(tmp_path / "missing.tsv")
    for text in ["", "\n\n", "a\ta\n1\t2\n", "a\tb\n1\n", "a\tb\n1\t2\t3\n"]:
        (tmp_path / "bad.tsv").write_text(text)
        with pytest.raises(leafpress.InvalidOption, match="bad.tsv"):
            load_results(tmp_path / "bad.tsv")


def test_quotes_and_odd_words_are_kept(tmp_path):
    (tmp_path / "x.tsv").write_text('name\tn\ttext\n"a ""b"""\t-1\tnan\nNA\t2e3\tinf\n', newline="")
    results = load_results(tmp_path / "x.tsv")
    assert list(results) == [{"name": 'a "b"', "n": -1.0, "text": "nan"}, {"name": None, "n": 2000.0, "text": "inf"}]


def test_a_notebook_shows_it():
    page = Results(["name", "n"], [["<b>", n] for n in range(30)])._repr_html_()
    assert page.count("<tr>") == 21 and "&lt;b&gt;" in page and "<b>" not in page and "10 rows more" in page
    assert "6 rows" in repr(load_results(DATA / "eval"))
