"""The rows of the benchmark: printed as they come, written as a table of tab-separated values, judged by their bars."""
import os


class Table:
    def __init__(self, path):
        self.path, self.rows = path, []
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("what\tnative\tours\tfigure\tbar\tverdict\tnotes\n")

    def add(self, what, native, ours, figure=None, bar=None, least=False, notes=""):
        """A figure and its bar: the most it may be, or with `least` the least. A row without a bar is for
        information."""
        verdict = "" if bar is None or figure is None else "reached" if (figure >= bar if least else figure <= bar) else "NOT REACHED"
        bound = "" if bar is None else f"{'>=' if least else '<='} {f'{bar:,}' if isinstance(bar, int) else f'{bar:g}'}"
        row = [what, _text(native), _text(ours), _text(figure), bound, verdict, notes]
        self.rows.append(row)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write("\t".join(row) + "\n")
        print("  ".join(part for part in row if part), flush=True)

    def show(self):
        heads = ["what", "native", "ours", "figure", "bar", "verdict"]
        rows = [heads, *(row[:6] for row in self.rows)]
        widths = [max(len(row[at]) for row in rows) for at in range(6)]
        print()
        for row in rows:
            print("  ".join(part.ljust(width) if at == 0 else part.rjust(width) for at, (part, width) in enumerate(zip(row, widths))).rstrip())
        missed = [row[0].strip() for row in self.rows if row[5] == "NOT REACHED"]
        print(f"\n{sum(row[5] == 'reached' for row in self.rows)} bars reached, {len(missed)} not{': ' + '; '.join(missed) if missed else ''}")
        print(f"the table with its notes: {self.path}")


def _text(value):
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}"
