"""advise: the laboratory's advisor."""

import _thread
import threading
import time

import pytest

import leafpress
from leafpress import advise

if not hasattr(leafpress._leafpress, "_advise"):
    pytest.skip("built without the advisor", allow_module_level=True)

WORDS = b"".join(b'{"id": %d, "name": "user %d", "mail": "user%d@example.org"}\n' % (n, n * 7, n) for n in range(30_000))
QUICK = {"device_us": 100, "memory": "256KiB", "data": "4MiB", "codecs": ["lz4", "zstd:1"], "quick": True}


@pytest.fixture(scope="module")
def advice():
    return advise(WORDS, **QUICK)


def test_it_recommends_with_reasons(advice):
    assert advice.pays and advice.verdict == "compress" and advice.codec in ("lz4", "zstd:1")
    assert 0 < advice.share <= 1 and 0 < advice.gain < 1 and advice.hit_ratio > advice.raw_hit_ratio
    assert advice.us_per_page < advice.raw_us_per_page and advice.device_us == 100
    assert (advice.data_bytes, advice.memory_bytes) == (4 << 20, 256 << 10)
    assert advice.raw_memory_bytes > advice.memory_bytes > advice.enough_memory_bytes
    assert advice.reasons and advice.cautions and advice.sentence in repr(advice)
    assert {row["codec"] for row in advice.candidates} == {"none", "lz4", "zstd:1"}
    assert advice.candidates[0]["recommended"] == 1
    assert advice.sentence.split()[0] in str(advice) and "--" not in advice.sentence


def test_reports_data_that_does_not_compress():
    import random

    advice = advise([random.Random(1).randbytes(1 << 20)], **QUICK)
    assert not advice.pays and advice.codec == "none" and advice.share == 0 and advice.verdict != "compress"


def test_it_shows_itself_and_writes_its_page(advice, tmp_path):
    page = advice._repr_html_()
    assert "<table>" in page and advice.reasons[0][:20].replace("'", "&#x27;") in page and "<script" not in page
    written = advice.report(tmp_path / "advice.html")
    assert written.read_text().lstrip().lower().startswith("<!doctype html")
    assert sorted(path.name for path in advice.save(tmp_path / "new" / "directory").iterdir()) == [
        "report.html", "results.json", "summary.tsv",
    ]
    assert len(leafpress.load_results(tmp_path / "new" / "directory")) == len(advice.candidates)


def test_samples_are_paths_or_bytes(tmp_path):
    (tmp_path / "a").write_bytes(WORDS[: 1 << 17])
    for sample in [tmp_path, (piece for piece in [WORDS[: 1 << 16], bytearray(WORDS[: 1 << 16])])]:
        assert advise(sample, **QUICK, workers=2).codec in ("lz4", "zstd:1", "none")


def test_it_reports_progress():
    reported = []
    advise(WORDS, **QUICK, progress=lambda share, what: reported.append((share, what)))
    assert reported and all(0 <= share <= 1 and isinstance(what, str) for share, what in reported)
    assert [share for share, _ in reported] == sorted(share for share, _ in reported) and threading.active_count() == 1


def test_a_trace_sets_the_access_distribution(tmp_path):
    (tmp_path / "trace").write_text("\n".join(str(n * n % 150) for n in range(20_000)))
    options = {**QUICK, "data": None, "memory": "128KiB", "access": f"trace:{tmp_path / 'trace'}"}
    advice = advise(WORDS, **options)
    assert advice.data_bytes == 8192 * len({n * n % 150 for n in range(20_000)}) or advice.data_bytes % 8192 == 0
    assert not any("access distribution was not given" in caution for caution in advice.cautions)


def test_what_progress_raises_ends_it():
    def fail(share, what):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        advise(WORDS, **QUICK, progress=fail)


def test_it_can_be_interrupted_and_lets_others_run():
    timer, counted = threading.Timer(1.0, _thread.interrupt_main), [0]

    def count():
        while timer.is_alive():
            counted[0] += 1
            time.sleep(0.001)

    timer.start()
    counting = threading.Thread(target=count)
    counting.start()
    with pytest.raises(KeyboardInterrupt):
        advise([WORDS] * 40, device_us=100, codecs=["zstd:19", "lz4:hc=12"], sample_bytes="64MiB")
    ended = time.monotonic()
    counting.join()
    assert counted[0] > 50
    # No thread of it is left.
    assert time.monotonic() - ended < 30


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({}, leafpress.InvalidOption, "device_us="),
        ({"device_us": 5, "device": "/tmp"}, leafpress.InvalidOption, "one of"),
        ({"device_us": -1}, leafpress.InvalidOption, "device_us"),
        ({"device_us": "x"}, TypeError, "str"),
        ({"device_us": 5, "memory": 1}, leafpress.InvalidOption, "memory"),
        ({"device_us": 5, "memory": "x"}, leafpress.InvalidOption, "memory"),
        ({"device_us": 5, "codecs": ["lz5"]}, leafpress.InvalidOption, "lz5"),
        ({"device_us": 5, "codecs": "lz5,lz4"}, leafpress.InvalidOption, "lz5"),
        ({"device_us": 5, "access": "no law"}, leafpress.InvalidOption, "access"),
        ({"device_us": 5, "access": "trace:/no/such"}, FileNotFoundError, "no/such"),
        ({"device_us": 5, "block_bytes": [5]}, leafpress.InvalidOption, "block_bytes"),
        ({"device_us": 5, "workers": 0}, leafpress.InvalidOption, "workers"),
        ({"device_us": 5, "workers": -1}, leafpress.InvalidOption, "workers"),
        ({"device": "/no/such/place"}, (leafpress.InvalidOption, OSError), "no/such"),
        ({"fio_json": "/no/such/place"}, (leafpress.InvalidOption, OSError), "no/such"),
    ],
)
def test_reports_invalid_arguments(options, error, says):
    with pytest.raises(error, match=says) as caught:
        advise(WORDS, **options)
    assert "--" not in str(caught.value)


@pytest.mark.parametrize(("sample", "error"), [("/no/such/file", (OSError, leafpress.InvalidOption)), (b"", leafpress.InvalidOption), ([], leafpress.InvalidOption), (5, TypeError), ([5], TypeError), ([b"x", 5], TypeError)])
def test_reports_invalid_samples(sample, error):
    with pytest.raises(error):
        advise(sample, device_us=5)
