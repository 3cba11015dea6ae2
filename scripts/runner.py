"""Runs the steps of `scripts/checks` and reports on them: what ran, what tests skipped, what was left out and why."""
import collections
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CORES = os.cpu_count() or 1


class Failure(Exception):
    """The step found something; the lines that tell it are printed again at the end."""

    def __init__(self, why, lines=()):
        super().__init__(why)
        self.lines = list(lines)


class Skip(Exception):
    """The step needs what is not there."""


class LeftOut(Exception):
    """The step did not run, or not to its end, which is not a failure: its time was up, or nothing has changed."""


class Output:
    """A test program's output, line by line: what to show of it, and what it says."""

    # What the end of a process without results looks like: cargo's line, which follows what the process itself said last.
    KILLED = re.compile(r"\s*process didn't exit successfully: `\S*?([^/`\s]+?)(-[0-9a-f]{16})?[ `].*\(signal: (.+)\)")
    # Of what a failing test printed, and of what was last printed before a signal.
    SHOWN_AGAIN = 40

    def __init__(self):
        self.passed = self.announced = self.done = 0
        self.skips, self.failures, self.failing_lines = [], [], []
        self.within_successes, self.within_failures, self.test = False, False, ""
        self.last = collections.deque(maxlen=self.SHOWN_AGAIN)
        self.panics, self.panicked_at = {}, None

    def shows(self, line):
        self.note_failures(line)
        if line == "successes:":
            self.within_successes = True
        elif self.within_successes and (line == "failures:" or line.startswith("test result:")):
            self.within_successes = False
        if section := re.match(r"---- (.+?)(?: stdout)? ----$", line):
            self.test = section.group(1)
        if (at := line.find("skipped: ")) >= 0 and (self.within_successes or at == 0):
            self.skips.append((self.test if self.within_successes else "", line[at + len("skipped: "):]))
        if ignored := re.match(r"test (.+) \.\.\. ignored(?:, (.*))?$", line):
            self.skips.append((ignored.group(1), ignored.group(2) or "ignored"))
        if running := re.match(r"running (\d+) tests?$", line):
            self.announced += int(running.group(1))
        if re.match(r"test .* \.\.\. (ok|FAILED|ignored)", line):
            self.done += 1
        if result := re.match(r"test result: \w+\. (\d+) passed;", line):
            self.passed += int(result.group(1))
        return not self.within_successes

    def note_failures(self, line):
        if failing := re.match(r"test (.+) \.\.\. FAILED", line):
            self.failures.append(failing.group(1))
        if killed := self.KILLED.match(line):
            self.failures.append(f"{killed.group(1)} ended by signal {killed.group(3)}")
            self.failing_lines += self.last
        if line == "failures:":
            self.within_failures, self.of_one = True, 0
        elif line.startswith("test result:"):
            self.within_failures = False
        elif self.within_failures:
            self.note_panic(line)
            self.of_one = 0 if line.startswith("---- ") else self.of_one + 1
            if self.of_one <= self.SHOWN_AGAIN:
                self.failing_lines.append(line)
        self.last.append(line)

    def note_panic(self, line):
        """Takes note of where a failing test panicked first, and of its message."""
        if self.panicked_at:
            self.panics.setdefault(self.test, f"{self.panicked_at}: {line[:200]}")
            self.panicked_at = None
        elif panicked := re.match(r"thread '.*panicked at (\S+:\d+):\d+:$", line):
            self.panicked_at = panicked.group(1)

    def failed(self):
        """The failed tests in a line, each with its first panic: the end of a report is what is always kept of it."""
        return ", ".join(f"{name} ({self.panics[name]})" if name in self.panics else name for name in self.failures)


RUNNING, ENDING = set(), threading.Event()


def start(command, env, **more):
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **(env or {})}, start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **more)
    RUNNING.add(process)
    return process


def after(seconds, what, *arguments):
    """Does something then, if it is not cancelled."""
    timer = threading.Timer(max(0, seconds), what, arguments)
    timer.daemon = True
    timer.start()
    return timer


def kill(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def suspend_again_and_again(process):
    """Stops a process and lets it go on, until it ends: what a machine does to its programs whose own processors are taken from it. The
    pauses are longer than the half second after which a device counts as stalled."""
    try:
        while process.poll() is None:
            for sent, least, most in ((signal.SIGSTOP, 0.55, 0.9), (signal.SIGCONT, 0.05, 0.5)):
                os.killpg(process.pid, sent)
                time.sleep(random.uniform(least, most))
    except ProcessLookupError:
        pass


def finish(process):
    process.wait()
    RUNNING.discard(process)


class Step:
    """One running step: its time and what it counted."""

    def __init__(self, name, deadline):
        self.name, self.deadline = name, deadline
        self.began = time.monotonic()
        self.passed = self.left_out = 0
        self.building = 0.0
        self.skips, self.notes = [], []

    def seconds_left(self):
        return self.deadline - time.monotonic()

    def run(self, command, env=None, seconds=None, quiet=False):
        """Runs a command to its end and shows what it prints. It is killed at the time limit, or at the step's deadline."""
        print("+ " + " ".join(command), flush=True)
        until = min(self.deadline, time.monotonic() + seconds if seconds else self.deadline)
        process, output, killed = start(command, env), Output(), threading.Event()

        def stop():
            killed.set()
            kill(process)

        timer = after(until - time.monotonic(), stop)
        for line in process.stdout:
            line = line.rstrip("\n")
            if output.shows(line) and not quiet:
                print(line, flush=True)
        finish(process)
        timer.cancel()
        self.passed += output.passed
        self.skips += output.skips
        if killed.is_set() and not output.failures:
            if output.done and seconds:
                self.passed += output.done - output.passed
                self.left_out += max(0, output.announced - output.done)
                return
            raise LeftOut("its time was up")
        if process.returncode != 0:
            why = "failed: " + output.failed() if output.failures else f"{command[0]} ended with {process.returncode}"
            raise Failure(why, output.failing_lines or output.last)

    def build(self, command, env):
        """Builds test programs; their paths."""
        print("+ " + " ".join(command), flush=True)
        process, paths, began = start(command + ["--no-run", "--message-format=json-render-diagnostics"], env), [], time.monotonic()
        timer = after(self.seconds_left(), kill, process)
        for line in process.stdout:
            if line.startswith("{"):
                if (path := re.search(r'"executable":"([^"]+)"', line)) and '"test":true' in line:
                    paths.append(path.group(1))
            else:
                print(line, end="", flush=True)
        finish(process)
        timer.cancel()
        self.building += time.monotonic() - began
        if self.seconds_left() <= 0:
            raise LeftOut("its time was up before it was built")
        if process.returncode != 0:
            raise Failure("it does not build")
        return paths

    def run_each(self, programs, seconds, env=None, prefix=(), first="", but="^$", filters=(), jobs=CORES):
        """Runs the programs' tests, each in a process of its own, in a random order, until the time is up: those whose names match
        `first` before the others, none that match `but`."""
        tests = []
        for program in programs:
            listed = subprocess.run([*prefix, program, "--list", "--format", "terse", *filters], cwd=ROOT, env={**os.environ, **(env or {})},
                                    capture_output=True, text=True)
            if listed.returncode != 0:
                raise Failure(f"{program} does not start: {listed.stderr.strip()}")
            tests += [(program, name) for name in re.findall(r"^(.+): test$", listed.stdout, re.M)]
        left_out_by_name = [name for _, name in tests if re.search(but, name)]
        self.skips += [(name, f"cannot run under {self.name}") for name in left_out_by_name]
        tests = [test for test in tests if not re.search(but, test[1])]
        if not tests:
            raise Failure("there are no such tests")
        random.shuffle(tests)
        tests.sort(key=lambda test: not (first and re.search(first, test[1])))
        until, failed, failing_lines = min(self.deadline, time.monotonic() + seconds), [], []
        print(f"running {len(tests)} tests for {until - time.monotonic():.0f} s", flush=True)

        def one(test):
            program, name = test
            if time.monotonic() >= until or ENDING.is_set():
                return "left out"
            began, output = time.monotonic(), Output()
            process = start([*prefix, program, "--exact", name, "--show-output"], env)
            timer = after(until - began, kill, process)
            lines = process.stdout.read().splitlines()
            finish(process)
            out_of_time = not timer.is_alive()
            timer.cancel()
            shown = [line for line in lines if output.shows(line)]
            self.skips += output.skips
            took = f"{time.monotonic() - began:.1f} s"
            if process.returncode == 0 and output.passed == 1:
                print(f"test {name} ... ok ({took})", flush=True)
                return "passed"
            if process.returncode == 0 and output.skips:
                return "passed"
            if out_of_time:
                return "left out"
            print("\n".join(shown) + f"\ntest {name} ... FAILED ({took})", flush=True)
            failed.append(output.failed() or name)
            failing_lines.extend([f"---- {name}", *shown[-Output.SHOWN_AGAIN:]])
            return "failed"

        with ThreadPoolExecutor(jobs) as pool:
            try:
                results = list(pool.map(one, tests))
            except BaseException:
                end_running()
                raise
        passed, left_out = results.count("passed"), results.count("left out")
        self.passed += passed
        self.left_out += left_out
        verdict = "FAILED" if failed else "ok"
        print(f"test result: {verdict}. {passed} passed; {len(failed)} failed; {left_out} left out, the time was up", flush=True)
        if failed:
            raise Failure("failed: " + ", ".join(failed), failing_lines)
        if not passed:
            raise LeftOut("no test ended within its time")

    def run_again(self, programs, wanted, runs, seconds):
        """Runs each of the tests `runs` times alone, `runs` times next to eight busy processes, and `runs` times while it is suspended again
        and again. One failure is enough."""
        tests = []
        for program in programs:
            listed = subprocess.run([program, "--list", "--format", "terse"], cwd=ROOT, capture_output=True, text=True)
            for path in re.findall(r"^(.+): test$", listed.stdout, re.M):
                # A test of a file has the path `file::test`, a unit test `folder::file::tests::test`, one of `main.rs` its name alone.
                parts = path.split("::")
                if any(parts[-1] == test.name and (test.stem in parts[:-1] or test.stem in os.path.basename(program) or test.stem in ("main", "mod"))
                       for test in wanted):
                    tests.append((program, path))
        found = {path.split("::")[-1] for _, path in tests}
        # Those that other features or another cfg compile.
        self.notes += [f"not in these programs: {test.stem}::{test.name}" for test in sorted(wanted) if test.name not in found]
        if not tests:
            raise LeftOut("none of the changed tests is in a program that can be run again")
        until, failed = min(self.deadline, time.monotonic() + seconds), {}
        done = 0
        for load in ("alone", "next to eight busy processes", "suspended again and again"):
            burners = [start([sys.executable, "-c", "while True: pass"], None) for _ in range(8 if "busy" in load else 0)]
            try:
                for _ in range(runs):
                    for program, path in tests:
                        if time.monotonic() >= until:
                            self.left_out += 1
                            continue
                        process = start([program, "--exact", path], None)
                        timer = after(600, kill, process)
                        if "suspended" in load:
                            threading.Thread(target=suspend_again_and_again, args=(process,), daemon=True).start()
                        output = process.stdout.read()
                        finish(process)
                        timer.cancel()
                        done += 1
                        if process.returncode != 0:
                            print(f"test {path} ... FAILED {load}", flush=True)
                            failed.setdefault(path, []).extend(output.splitlines()[-Output.SHOWN_AGAIN:])
            finally:
                for process in burners:
                    kill(process)
                    finish(process)
        self.notes.append(f"{done} runs of {len(tests)} tests")
        if failed:
            raise Failure("not every run passed: " + ", ".join(sorted(failed)), [line for path in failed for line in (f"---- {path}", *failed[path])])
        if not done:
            raise LeftOut("no test ran within its time")


class Report:
    def __init__(self, deadline):
        self.deadline, self.began = deadline, time.monotonic()
        self.require = os.environ.get("REQUIRE") == "1"
        self.rows, self.skips, self.failed, self.failing_lines = [], [], False, []

    def do(self, name, work, deadline=None):
        """Runs a step; True when it neither failed nor was left out."""
        step = Step(name, min(self.deadline, deadline or self.deadline))
        print(f"==> {name}", flush=True)
        verdict, why = "passed", ""
        if step.seconds_left() < 20:
            verdict, why = "left out", "no time was left for it"
        else:
            try:
                work(step)
            except Failure as failure:
                verdict, why = "FAILED", str(failure)
                self.failing_lines += [f"---- of {name}:", *failure.lines]
            except LeftOut as left_out:
                verdict, why = "left out", str(left_out)
            except Skip as skip:
                verdict, why = "skipped", str(skip)
                if self.require and not cannot_be_installed(name):
                    verdict, why = "FAILED", f"REQUIRE=1, and it was skipped: {skip}"
            except FileNotFoundError as missing:
                verdict, why = "FAILED", f"{missing.filename} is not there"
        if step.passed:
            why = "; ".join(filter(None, [why, f"{step.passed} tests passed"]))
        if step.left_out:
            why += f"; {step.left_out} left out: its time was up"
        built = f"built in {step.building:.0f} s" if step.building else ""
        why = "; ".join(filter(None, [why, built, *step.notes]))
        self.failed |= verdict == "FAILED"
        self.skips += [(name, test, reason) for test, reason in step.skips]
        self.rows.append((name, verdict, time.monotonic() - step.began, why))
        print(f"==> {name}: {verdict} after {self.rows[-1][2]:.0f} s{': ' + why if why else ''}", flush=True)
        return verdict == "passed"

    def close(self, not_begun=()):
        """Prints what ran, what was skipped and what was left out. The exit code."""
        self.rows += [(name, "left out", 0, "not begun") for name in not_begun]
        if self.failing_lines:
            print("\n==> what failed said")
            print("\n".join(self.failing_lines))
        print("\n==> what ran")
        for name, verdict, seconds, why in self.rows:
            print(f"{name:<12} {verdict:<9} {seconds:6.0f} s  {why}".rstrip())
        # A test may say so for each of its cases.
        skips = dict.fromkeys(self.skips)
        reasons = {}
        for step, test, reason in skips:
            reasons.setdefault((step, reason), []).append(test)
        print(f"==> skipped by tests: {len(skips)}")
        for (step, reason), tests in sorted(reasons.items()):
            named = ", ".join(sorted({test for test in tests if test})[:4])
            print(f"{step}: {reason}: {len(tests)}{' (' + named + ')' if named else ''}")
        for name, verdict, _, why in self.rows:
            if verdict == "FAILED":
                print(f"==> {name} FAILED: {why}")
        took = time.monotonic() - self.began
        print(f"==> {'FAILED' if self.failed else 'all that ran passed'}, {took / 60:.1f} minutes", flush=True)
        return 1 if self.failed else 0


def cannot_be_installed(name):
    """Whether `scripts/setup test` has tried to install what the step needs, and could not."""
    try:
        with open(os.path.join(ROOT, "target/cannot-be-installed"), encoding="utf-8") as file:
            return name in file.read().split()
    except FileNotFoundError:
        return False


def end_running():
    ENDING.set()
    for process in list(RUNNING):
        kill(process)
