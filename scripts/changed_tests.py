"""Finds the tests that a change touches, for the `flaky` step of `scripts/checks`."""
import collections
import os
import re
import subprocess

# A test function: the package it belongs to, its file's stem, and its name.
Test = collections.namedtuple("Test", "package stem name")

HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
ATTRIBUTE = re.compile(r"^\s*#\[(?:\w+::)*test\b")
FUNCTION = re.compile(r"^(\s*)(?:pub(?:\(\w+\))? )?(?:async )?fn (\w+)")


def changed_tests(root, base):
    """The tests whose lines differ from those of the commit `base`. Where a file below a `tests` folder changed outside of its tests, as
    in a helper that they call, all of its tests count; where it has none, as `main.rs` and `support`, nothing does."""
    tests = set()
    for path, lines in changed_lines(root, base).items():
        with open(os.path.join(root, path), encoding="utf-8") as file:
            spans = test_spans(file.read().split("\n"))
        package = package_of(root, path)
        if package is None:
            continue
        named = {name for name, first, last in spans if any(first <= line <= last for line in lines)}
        is_helper = any(not any(first <= line <= last for _, first, last in spans) for line in lines)
        if is_helper and "/tests/" in path:
            named = {name for name, _, _ in spans}
        stem = os.path.basename(path).removesuffix(".rs")
        tests |= {Test(package, stem, name) for name in named}
    return tests


def changed_lines(root, base):
    """The line numbers that are new or changed in each Rust file of the working tree, untracked files included."""
    changed, path = {}, None
    diff = subprocess.run(["git", "diff", "--unified=0", "--no-color", "--no-ext-diff", base, "--", "*.rs"], cwd=root, capture_output=True,
                          text=True, errors="replace", check=True)
    for line in diff.stdout.splitlines():
        if line.startswith("+++ "):
            path = line[6:] if line.startswith("+++ b/") else None
        elif (hunk := HUNK.match(line)) and path:
            first, count = int(hunk[1]), int(hunk[2] or 1)
            changed.setdefault(path, set()).update(range(first, first + count))
    others = subprocess.run(["git", "ls-files", "--others", "--exclude-standard", "--", "*.rs"], cwd=root, capture_output=True, text=True, check=True)
    for path in others.stdout.splitlines():
        with open(os.path.join(root, path), encoding="utf-8") as file:
            changed[path] = set(range(1, len(file.read().split("\n")) + 1))
    return changed


def test_spans(lines):
    """Name, first and last line of each test function, lines counted from one. A function ends with the first closing brace that is as
    far in as its own `fn`, which holds for formatted code."""
    spans, first = [], None
    for number, line in enumerate(lines, 1):
        if ATTRIBUTE.match(line):
            first = number
        elif first and (function := FUNCTION.match(line)):
            end = function[1] + "}"
            last = next((n for n in range(number, len(lines) + 1) if lines[n - 1] == end), number)
            spans.append((function[2], first, last))
            first = None
    return spans


def package_of(root, path):
    """The package of the main workspace that a file belongs to, or none."""
    folder = os.path.dirname(path)
    while folder:
        manifest = os.path.join(root, folder, "Cargo.toml")
        if os.path.isfile(manifest):
            with open(manifest, encoding="utf-8") as file:
                name = re.search(r'^name = "(.*)"$', file.read(), re.M)
            is_member = subprocess.run(["cargo", "metadata", "--no-deps", "--format-version=1"], cwd=root, capture_output=True, text=True)
            return name[1] if name and f'"name":"{name[1]}"' in is_member.stdout else None
        folder = os.path.dirname(folder)
    return None
