"""What the tests share: how many inputs are tried, and what is said of skips."""

import os
import sys

import hypothesis
import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

hypothesis.settings.register_profile(
    "leafpress", max_examples=int(os.environ.get("PYTHON_EXAMPLES") or 60), deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
)
hypothesis.settings.load_profile("leafpress")


def pytest_configure(config):
    config.addinivalue_line("markers", "long: left out with all but the oldest and the newest Python in the quick part")


def pytest_terminal_summary(terminalreporter):
    # In a line of its own, which scripts/checks counts.
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        terminalreporter.line(f"skipped: {report.nodeid}: {reason.removeprefix('Skipped: ')}")


@pytest.fixture
def run_python():
    """Runs a script in a process of its own; what it printed."""
    import subprocess

    def run(script, seconds=60):
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=seconds)
        assert ended.returncode == 0, f"ended with {ended.returncode}: {ended.stdout}{ended.stderr}"
        return ended.stdout

    return run
