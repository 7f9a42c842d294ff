# SPDX-License-Identifier: BSD-3-Clause
"""What the scripts for closed loops share: runs of `rocebox sim`, so many at a time, and tables."""
import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def arguments(description, **numbers):
    """The command line: BUILD_FOLDER, --jobs, --seeds, --set, and the numbers given."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="folder of a build, with runtime/cli/rocebox")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each point; means are shown")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as of `rocebox sim`, for all runs")
    for name, (default, what) in numbers.items():
        parser.add_argument(f"--{name}", type=type(default), default=default, help=f"{what} (default {default})".replace("%", "%%"))
    return parser.parse_args()


# Themis by the paper's letter: what kernels/themis/README.md adds to it (stashes that age, retransmissions after a timeout that may go
# another way) is off.
THEMIS_LETTER = {"reroute_timeouts": "false", "topology.switches.switch.themis.stash_timeout": "0"}


class Run:
    """What one run came to."""

    def __init__(self, report, held=True, said=""):
        self.report, self.held, self.said = report, held, said  # `held`: exit status 0

    def count(self, name):
        """A counter of all devices and links together."""
        total = 0
        for device in self.report["devices"].values():
            for kernel in device["kernels"].values():
                total += kernel["counters"].get(name, 0)
        return total

    def workload(self, name):
        return self.report["workloads"][name]

    def completion_ns(self, name):
        """From the first step of a collective, all of whose connections are there, to its end or that of the run."""
        ran = self.workload(name)
        return ran["details"].get("completion_time_ns", ran["duration_ns"])


def find_rocebox(build):
    for path in (build / "rocebox", build / "runtime/cli/rocebox"):
        if path.is_file():
            return path.resolve()
    raise SystemExit(f"{build}: there is no rocebox")


def run_all(options, config, points):
    """Runs `config` with the settings of each point, a dict, and each seed; a list of runs a point."""
    rocebox = find_rocebox(options.build)
    with tempfile.TemporaryDirectory() as folder:
        def run(number_and_seed):
            number, seed = number_and_seed
            out = pathlib.Path(folder) / f"{number}.{seed}.json"
            words = [rocebox, "sim", ROOT / "configs/sim" / config, "--quiet", "--full", "--json", out, "--seed", str(seed)]
            for key, value in points[number].items():
                words += ["--set", f"{key}={value}"]
            for setting in options.set:
                words += ["--set", setting]
            done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
            if done.returncode not in (0, 1) or not out.exists():
                raise SystemExit(f"{points[number]}, seed {seed}: rocebox ended with status {done.returncode}: {done.stderr}")
            return Run(json.loads(out.read_text()), done.returncode == 0, done.stderr)

        todo = [(number, seed) for number in range(len(points)) for seed in range(1, options.seeds + 1)]
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            runs = list(pool.map(run, todo))
    runs = [runs[i * options.seeds:(i + 1) * options.seeds] for i in range(len(points))]
    # A run that is not as it should be is no measurement like the others: who reads the table has to know.
    for point, its in zip(points, runs):
        for run in its:
            if not run.held:
                print(f"{config} with {point}: something stated does not hold, or the run did not finish:\n{run.said}", file=sys.stderr)
    return runs


def mean(runs, value):
    return sum(value(run) for run in runs) / len(runs)


def table(columns, rows):
    """Prints a table in Markdown."""
    cells = [[str(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    lines = ["| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|")
    print("\n".join(lines))
