"""Forks, pickles to other processes, threads, the interpreter's end, and other interpreters."""

import copy
import multiprocessing
import os
import pickle
import sys
import threading
import time

import leafpress
import pytest
from leafpress import ForkedProcess, Tree

RECORDS = {b"%06d" % n: b"value of %d" % n for n in range(5000)}


def use(tree):
    """Every way of using a tree: what each raises."""
    ways = [lambda: tree[b"a"], lambda: tree.get(b"a"), lambda: tree.__setitem__(b"a", b""), lambda: tree.pop(b"a"), lambda: b"a" in tree,
            lambda: len(tree), lambda: list(tree), lambda: tree.update({b"a": b""}), lambda: tree.update([]), lambda: tree.get_many([b"a"]),
            lambda: tree.stats(), lambda: tree.settle(), lambda: tree.copy(), lambda: pickle.dumps(tree), lambda: tree[b"a":].__len__(),
            lambda: repr(tree), lambda: tree.clear(), lambda: tree == Tree(), lambda: tree.swap(b"a", b"")]
    raised = []
    for way in ways:
        try:
            way()
            raised.append(None)
        except Exception as error:
            raised.append(type(error))
    return raised


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_gets_an_exception():
    tree = Tree(RECORDS, background_threads=1)
    iterator = iter(tree)
    next(iterator)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            raised = set(use(tree))
            own = Tree({b"a": b"1"})
            own.update(RECORDS)
            own.settle()
            fine = own[b"a"] == b"1" and len(own) == len(RECORDS) + 1
            del tree, iterator, own
            os.write(writing, f"{raised == {ForkedProcess}} {fine}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    assert os.read(reading, 1000) == b"True True"
    os.close(reading)
    os.waitpid(child, 0)
    assert tree == RECORDS


def child_of_multiprocessing(tree, results):
    results.put([kind.__name__ if kind else "" for kind in set(use(tree))])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_reports_multiprocessing_by_fork():
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    process = context.Process(target=child_of_multiprocessing, args=(Tree(RECORDS), results))
    process.start()
    assert results.get(timeout=60) == ["ForkedProcess"]
    process.join(60)
    assert process.exitcode == 0


def size_of(tree):
    return len(tree), tree[b"000007"], tree.codec


@pytest.mark.long
def test_multiprocessing_by_spawn_takes_trees():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(size_of, (Tree(RECORDS, codec="zstd:3"),)) == (len(RECORDS), b"value of 7", "zstd:3")


class Named(Tree):
    pass


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(protocol):
    tree = Named({"a": b"\xff", "ä": b""}, encoding=("utf-8", None), codec="zstd:2", dictionary=b"words" * 100, shards=2, frame_bytes=512)
    tree.name = "mine"
    other = pickle.loads(pickle.dumps(tree, protocol))
    assert other == tree
    assert (type(other), other.name, other.codec, other.encoding) == (Named, "mine", "zstd:2", ("utf-8", None))
    assert other.dictionary == b"words" * 100
    for same in [copy.copy(tree), copy.deepcopy(tree)]:
        assert same == tree
        assert same is not tree


def test_copies_have_the_attributes_of_a_subclass():
    tree = Named({b"a": b"1"})
    tree.notes, tree.me = ["note"], tree
    for same in [tree.copy(), copy.copy(tree)]:
        assert same == tree and same is not tree
        assert same.notes is tree.notes and same.me is tree
    deep = copy.deepcopy([tree, tree])
    assert deep[0] is deep[1] and deep[0] == tree and deep[0].notes == ["note"] and deep[0].notes is not tree.notes and deep[0].me is deep[0]


def test_pickles_are_compressed():
    tree = Tree((b"%08d" % n, b"some text that comes again and again %d" % n) for n in range(20_000))
    assert len(pickle.dumps(tree)) < tree.stats().user_bytes / 4
    long = Tree({b"a": os.urandom(10_000_000)})
    assert pickle.loads(pickle.dumps(long)) == long


def test_threads_read_and_write_one_tree():
    tree = Tree(RECORDS)
    keys, errors, ended = sorted(RECORDS), [], threading.Event()

    def reader():
        try:
            while not ended.is_set():
                assert tree.get_many(keys[::50]) == [RECORDS[key] for key in keys[::50]]
                assert [key for key in tree if len(key) == 6] == keys
                assert len(tree[keys[10]:keys[20]]) >= 10
        except BaseException as error:
            errors.append(error)

    def writer(me):
        try:
            for n in range(400):
                tree[b"new:%d:%d" % (me, n)] = b"x" * (n * 50)
                tree.update((b"run:%d:%05d" % (me, m), b"y" * 30) for m in range(n % 40))
                del tree[b"run:%d" % me:b"run:%d;" % me]
        except BaseException as error:
            errors.append(error)

    readers = [threading.Thread(target=reader) for _ in range(2)]
    writers = [threading.Thread(target=writer, args=(me,)) for me in range(2)]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    ended.set()
    for thread in readers:
        thread.join()
    assert errors == []
    tree.validate()
    assert len(tree) == len(RECORDS) + 800


def test_others_run_while_a_tree_works():
    """A long call lets go of the interpreter's lock: another thread gets on meanwhile."""
    tree = Tree((b"%07d" % (n * 7919 % 200_000), b"some text that is compressed %d" % n) for n in range(200_000))
    steps, ended = [0], threading.Event()

    def count():
        while not ended.is_set():
            steps[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    before = steps[0]
    tree.compact()
    during = steps[0] - before
    ended.set()
    thread.join()
    # With the lock held it would get none, or the one that a switch allows.
    assert during > 10


def test_the_interpreter_ends_with_trees_alive(run_python):
    script = """
import threading, leafpress
tree = leafpress.Tree(((b"%06d" % n, b"value %d" % n) for n in range(50_000)), background_threads=2)
items = iter(tree.items())
next(items)
class Last:
    def __del__(self):
        self.tree.get(b"000001")
last = Last()
last.tree, last.me = tree, last
def forever():
    while True:
        tree.get_many([b"000001"] * 1000)
        tree[b"a"] = b"b"
threading.Thread(target=forever, daemon=True).start()
threading.Thread(target=forever, daemon=True).start()
print("ended")
"""
    for _ in range(3):
        assert run_python(script) == "ended\n"


def test_daemon_threads_end_with_the_interpreter(run_python):
    """Each is in Python code that a method has called when the interpreter ends, and requests its lock after that."""
    script = """
import leafpress, threading, time, sys
sys.setswitchinterval(1e-4)
tree = leafpress.Tree()
cache = leafpress.Cache("4MiB", serializer=(lambda value: spin() if value == b"dumps" else value, lambda value: spin() if value == b"loads" else value))
cache[1], tree[b"a"] = b"loads", b"1"
begun = threading.Semaphore(0)
def spin(*arguments):
    begun.release()
    while True:
        pass
def spins():
    spin()
    yield 1, 2
class Spins(dict):
    __getitem__ = items = spin
    def __iter__(self):
        spin()
ways = [lambda: cache.get_or_set(2, spin), lambda: cache.__setitem__(3, b"dumps"), lambda: cache[1], lambda: cache.get_many([1]), lambda: cache.set_many(spins()),
        lambda: cache.set_many(Spins()), lambda: cache.get_many(spins()), lambda: cache.delete_many(spins()), lambda: cache.update_with(4, spin),
        lambda: tree.update(spins()), lambda: tree.update(Spins()), lambda: tree.get_many(spins()), lambda: tree.remove_many(Spins()), lambda: tree.update_with(b"a", spin)]
for way in ways:
    threading.Thread(target=way, daemon=True).start()
for way in ways:
    begun.acquire()
class Last:
    # The others get the lock meanwhile.
    def __del__(self, sleep=time.sleep):
        sleep(0.5)
last = Last()
last.me = last
print("ended")
"""
    assert run_python(script) == "ended\n"


def test_other_interpreters_are_refused(run_python):
    # The module's name has changed with the versions of Python.
    script = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import leafpress
code = '''
try:
    import leafpress
    print("went well", flush=True)
except ImportError as error:
    print("refused:", str(error)[:200], flush=True)
'''
interpreter = interpreters.create()
print(interpreters.run_string(interpreter, code) or "")
"""
    output = run_python(script)
    assert "refused" in output
    assert "went well" not in output


def test_a_signal_ends_a_long_update(run_python):
    script = """
import leafpress, os, signal, threading
def records():
    n = 0
    while True:
        n += 1
        if n == 50_000:
            os.kill(os.getpid(), signal.SIGINT)
        yield b"%09d" % n, b"v"
tree = leafpress.Tree()
try:
    tree.update(records())
except KeyboardInterrupt:
    print(len(tree) > 40_000)
"""
    assert run_python(script) == "True\n"


def test_versions():
    assert leafpress.__version__.count(".") == 2
    assert sys.version_info >= (3, 10)
