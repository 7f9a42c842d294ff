#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Allgather's figure 16: chunks a second that the receive side sustains, chunks of 64 B, up to half of the DPA.

usage: allgather_figure_16.py BUILD_FOLDER [--jobs N]

Runs configs/sim/dpa_receive.yaml. Fitted is Table I alone; "paper" is what the text of VII states, nothing read off the plot.
"""
from dpa_receive import RATE_1600, SMALL, UC, UD, arguments, error, measure, statements, table

THREADS = (16, 32, 64, 128)


def main():
    options = arguments(__doc__)
    uc = measure(options, [{**UC, **SMALL, "threads": n} for n in THREADS])
    ud = measure(options, [{**UD, **SMALL, "threads": n} for n in THREADS])
    rows = [[n, f"{a.rate / 1e6:.1f}", f"{a.gbps():.0f}", f"{b.rate / 1e6:.1f}", f"{b.gbps():.0f}"] for n, a, b in zip(THREADS, uc, ud)]
    table(("threads", "UC, M chunks/s", "as Gbit/s of 4 KiB", "UD, M chunks/s", "as Gbit/s of 4 KiB"), rows)
    said = []
    for name, points in (("UC", uc), ("UD", ud)):
        rate = points[-1].rate
        said.append([f"{name}: 128 threads sustain 1600 Gbit/s, M chunks/s", f"at least {RATE_1600 / 1e6:.1f}",
                     f"{rate / 1e6:.1f} ({error(rate, RATE_1600)})", "holds" if rate >= RATE_1600 else "does not hold"])
    statements(said)


if __name__ == "__main__":
    main()
