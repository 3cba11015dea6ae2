"""The examples in the documentation do what they say: docstrings of all that is public, and the README."""

import contextlib
import doctest
import io
import os
import re

import leafpress
import pytest
from leafpress import _leafpress, _memoize, codec

README = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "README.md")


def public():
    for name in leafpress.__all__:
        found = getattr(leafpress, name)
        if callable(found):
            yield pytest.param(name, found, id=name)
    # What is public by what has it.
    for found in [leafpress.cache, leafpress.codec, leafpress.results, _memoize]:
        yield pytest.param(found.__name__, found, id=found.__name__)
    for found in [_leafpress.CacheBase, _leafpress.Dictionary, codec.compress, codec.decompress, codec.train]:
        yield pytest.param(found.__name__, found, id=found.__name__)


@pytest.mark.parametrize(("name", "found"), list(public()))
def test_docstrings(name, found):
    names = vars(leafpress) | {"leafpress": leafpress}
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(verbose=False)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        # What a Python module of ours has from elsewhere, as typing's classes, has examples that are not ours.
        module = found if found is _memoize else False
        for test in finder.find(found, name, module=module, globs=dict(names)):
            runner.run(test)
    assert runner.failures == 0, output.getvalue()


def test_what_is_public_is_documented():
    undocumented = [name for name in leafpress.__all__ if callable(getattr(leafpress, name)) and not getattr(leafpress, name).__doc__]
    for found in [leafpress.Tree, leafpress.TreeRange, leafpress.Cache, _leafpress.CacheBase, codec.Dictionary, _memoize.Memoized, leafpress.Results, leafpress.Advice]:
        undocumented += [f"{found.__name__}.{name}" for name in vars(found) if not name.startswith("_") and not getattr(found, name).__doc__]
    assert undocumented == []


def test_the_readme(tmp_path, monkeypatch):
    """Its blocks, one after the other, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    with open(README, encoding="utf-8") as file:
        blocks = re.findall(r"^```python\n(.*?)^```", file.read(), re.M | re.S)
    assert blocks
    names = {"__name__": "__main__"}
    for block in blocks:
        exec(compile(block, README, "exec"), names)


def test_links_of_the_readme_work_on_any_page():
    with open(README, encoding="utf-8") as file:
        links = re.findall(r"\]\(([^)\s]+)\)", file.read())
    repository = "https://github.com/leafpress/leafpress/blob/main/"
    assert links and all(link.startswith(("https://", "#")) for link in links)
    for link in links:
        if link.startswith(repository):
            assert os.path.exists(os.path.join(os.path.dirname(README), "../..", link.removeprefix(repository))), link


def test_the_typing_sample_runs():
    import typing_sample

    assert typing_sample.main
