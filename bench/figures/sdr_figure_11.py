#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SDR's figure 11: what encoding costs, (32, 8) with chunks of 64 KiB over 128 MiB, MDS and XOR, beside ISA-L called directly; and the
drop rates at which these codes fall back.

usage: sdr_figure_11.py BUILD_FOLDER [--rounds N]

BUILD_FOLDER is a release build: bench/sdr_codec_bench runs there, on one core, and the best of its rounds counts. Cores are those that
encode 400 Gbit/s of data; they are this machine's, and the paper's are of 4 GHz. Drop rates are of `rocebox model sdr`. "paper" is what
the text of 5.2 states, and that of the artifact's description.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import tempfile

from closed_loops import find_rocebox, table

LINK = 400
PAPER_XOR, PAPER_RATIO, PAPER_THREADS = 4, 2, (4, 8)
BENCHES = (("isal_direct", "MDS, ISA-L called directly"), ("encode/mds_isal", "MDS by ISA-L"), ("encode/mds_best", "MDS, what is chosen here"),
           ("encode/xor", "XOR"))


def measured(build, rounds, folder):
    """Benchmark name -> Gbit/s of data on one core."""
    program, out = build / "bench" / "sdr_codec_bench", folder / "codec.json"
    if not program.is_file():
        raise SystemExit(f"{program}: there is none; this figure needs a release build with Google Benchmark")
    words = ["taskset", "-c", str(max(os.sched_getaffinity(0))), program, "--benchmark_filter=isal_direct|mds_isal|mds_best|encode/xor",
             f"--benchmark_repetitions={rounds}", "--benchmark_min_time=0.02", f"--benchmark_out={out}", "--benchmark_out_format=json"]
    subprocess.run(words, check=True, capture_output=True)
    best = {}
    for row in json.loads(out.read_text())["benchmarks"]:
        if row["run_type"] == "iteration":
            best[row["name"]] = max(row["bytes_per_second"] * 8 / 1e9, best.get(row["name"], 0))
    return best


def modelled(build, folder):
    """What the model of the completion time says of falling back."""
    out = folder / "model.json"
    subprocess.run([find_rocebox(build), "model", "sdr", "--set", "figure=10", "--set", "samples=10", "--json", out], check=True,
                   capture_output=True)
    figures = json.loads(out.read_text())["figures"]
    return [one for figure in figures.values() for one in figure["statements"] if "fall back" in one["statement"] or "robust" in one["statement"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="folder of a release build")
    parser.add_argument("--rounds", type=int, default=12, help="repetitions of each benchmark, of which the best counts (default 12)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        rate = measured(options.build, options.rounds, pathlib.Path(name))
        statements = modelled(options.build, pathlib.Path(name))
    cores = {bench: math.ceil(LINK / gbps) for bench, gbps in rate.items()}
    table(("code", "Gbit/s a core", "to ISA-L", f"cores for {LINK} Gbit/s"),
          [[what, f"{rate[bench]:.1f}", f"{rate[bench] / rate['isal_direct']:.2f}", cores[bench]] for bench, what in BENCHES])
    ratio, own = (rate["encode/xor"] / rate[bench] for bench in ("encode/mds_isal", "encode/mds_best"))
    print("\nwhat the text states")
    table(("statement", "paper", "ours", "error or verdict"),
          [["cores that hide XOR at 400 Gbit/s (4 GHz)", PAPER_XOR, cores["encode/xor"], f"{100 * (cores['encode/xor'] / PAPER_XOR - 1):+.0f}%"],
           ["MDS needs so many times as many, by ISA-L", PAPER_RATIO, f"{ratio:.2f}", f"{100 * (ratio / PAPER_RATIO - 1):+.0f}%"],
           ["the same, by what is chosen here", PAPER_RATIO, f"{own:.2f}", f"{100 * (own / PAPER_RATIO - 1):+.0f}%"],
           ["threads with AVX-512 that reach 400 Gbit/s over 128 MiB", "{} to {}".format(*PAPER_THREADS), cores["encode/mds_best"],
            "holds" if cores["encode/mds_best"] <= PAPER_THREADS[1] else "does not hold"],
           *[[one["statement"], one["published"], one["ours"], "holds" if one["holds"] else "does not hold"] for one in statements]])


if __name__ == "__main__":
    main()
