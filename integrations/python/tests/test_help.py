"""What help() shows reads well."""

import inspect
import pydoc
import re

import pytest
from leafpress import Tree, TreeIterator, TreeRange


@pytest.mark.parametrize("found", [Tree, TreeRange, TreeIterator])
def test_every_method_has_a_signature(found):
    for name, method in vars(found).items():
        if callable(method) and not name.startswith("_"):
            assert "self" in str(inspect.signature(method)) or name == "fromkeys", name


def test_the_class_documents_its_constructor():
    signature = inspect.signature(Tree)
    assert list(signature.parameters)[:4] == ["records", "codec", "encoding", "dictionary"]
    text = pydoc.render_doc(Tree, renderer=pydoc.plaintext)
    assert "encoding=None" in text
    # Newer versions break long lines.
    assert "irange(self, /, minimum=None, maximum=None" in re.sub(r"[\s|]+", " ", text).replace("irange( ", "irange(")
