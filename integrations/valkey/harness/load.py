"""Runs the load generator, which is compiled where it is first wanted, and says whether it or the server was the
limit."""
import os
import subprocess
import tempfile
from dataclasses import dataclass

import servers

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "load.c")


def program():
    path = os.path.join(os.path.dirname(servers.directory()), "load")
    if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(SOURCE):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-Wall", "-o", path, SOURCE], check=True)
    return path


@dataclass
class Load:
    """The requests of a load: templates of commands as load.c describes them, words in a list."""
    read: list
    write: list
    keys: int
    fields: int = 1
    reads: int = 100
    clients: int = 50
    pipeline: int = 1


def cpu_seconds(process):
    """What a process has used, with its threads."""
    with open(f"/proc/{process}/stat", encoding="ascii") as file:
        parts = file.read().rsplit(")", 1)[1].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


class Values:
    """A file of values to write, kept until remove()."""

    def __init__(self, values):
        from data import write_values
        handle, self.path = tempfile.mkstemp(prefix="leafpress-values-")
        os.close(handle)
        write_values(self.path, values)

    def remove(self):
        os.unlink(self.path)


def start(server, load, seconds, values, seed=1):
    command = [program(), server.port, seconds, load.clients, load.pipeline, seed, load.reads, load.keys, load.fields, values.path,
               "\t".join(load.read), "\t".join(load.write)]
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)


def finish(process):
    out, _ = process.communicate(timeout=600)
    if process.returncode != 0:
        raise RuntimeError("the load generator failed")
    figures = {name: float(value) for name, value in (part.split("=") for part in out.split())}
    if figures["errors"]:
        raise RuntimeError(f"{figures['errors']:.0f} of the commands were answered with errors")
    return figures


def run(server, load, seconds, values, seed=1):
    """The figures that load.c prints, and `server_busy`, the share of a core that the server used."""
    before = cpu_seconds(server.process.pid)
    figures = finish(start(server, load, seconds, values, seed))
    figures["server_busy"] = (cpu_seconds(server.process.pid) - before) / seconds
    return figures
