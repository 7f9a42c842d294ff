#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of one call of a benchmark, counted by callgrind: for machines that let nobody read their counters. The benchmark is
registered a second time as NAME/counted, with 20 and with 520 iterations, whose difference has no beginning and end in it.

usage: instructions.py BENCHMARK NAME[=CALLS]...    prints a JSON object of those that could be counted; CALLS: in one iteration
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

FEW, MANY = 20, 520


def collected(benchmark, name, iterations):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={pathlib.Path(folder) / 'out'}", benchmark,
                               f"--benchmark_filter=^{name}/counted/iterations:{iterations}$"], capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found or f"{name}/counted" not in done.stdout:
        return None  # valgrind does not bear every switch of stacks
    return int(found.group(1))


def main():
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    counts = {}
    for word in sys.argv[2:]:
        name, _, calls = word.partition("=")
        few, many = (collected(sys.argv[1], name, iterations) for iterations in (FEW, MANY))
        if few and many:
            counts[name] = (many - few) / (MANY - FEW) / int(calls or 1)
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
