#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Allgather's figure 13: throughput of the receive side on a DPA at 200 Gbit/s, 4 KiB chunks, by threads.

usage: allgather_figure_13.py BUILD_FOLDER [--jobs N]

Runs configs/sim/allgather/dpa_receive.yaml: a Broadcast to a leaf whose DPA runs the collective's own handlers. Fitted is Table I alone: cycles and instructions of a CQE of one thread. All else is predicted, and
"paper" is what the text of VI-C states, nothing read off the plot. The CPU's baseline is not modelled.
"""
from dpa_receive import LINK, TABLE_1, arguments, error, handlers, statements, table

THREADS = (1, 2, 4, 8, 16)
FULL = 0.95  # of the frames' share of the link that is payload


def main():
    options = arguments(__doc__)
    uc = handlers(options, "uc", THREADS)
    ud = handlers(options, "ud", THREADS)
    small, = handlers(options, "ud", THREADS[-1:], staging=4 << 20)
    rows = [[n, f"{a.gbps():.1f}", f"{b.gbps():.1f}", f"{a.arriving * 4096 * 8 / 1e9:.1f}"] for n, a, b in zip(THREADS, uc, ud)]
    table(("threads", "UC, Gbit/s", "UD, Gbit/s", "what comes"), rows)

    def full_at(points):
        return next((n for n, point in zip(THREADS, points) if point.rate >= FULL * point.arriving), None)

    def verdict(at, stated):
        return "holds" if at in stated else "never" if at is None else "sooner than stated" if at < stated[0] else "later than stated"

    said = []
    for name, points, share in (("UC", uc, 1 / 2), ("UD", ud, 1 / 5)):
        gib = points[0].gbps() / 8 * 1e9 / 2**30
        said.append([f"{name}, one thread, GiB/s (Table I: measured)", TABLE_1[name][0], f"{gib:.2f}", error(gib, TABLE_1[name][0])])
        by_cycles = 1.8e9 / TABLE_1[name][2] * 4096 / 2**30
        said.append([f"{name}, one thread, GiB/s (Table I: by its cycles)", f"{by_cycles:.2f}", f"{gib:.2f}", error(gib, by_cycles)])
        ours = points[0].gbps() * 1e9 / LINK
        said.append([f"{name}, one thread, share of 200 Gbit/s", f"{share:.2f}", f"{ours:.2f}", error(ours, share)])
    said.append(["UC reaches the full throughput with threads", 4, full_at(uc), verdict(full_at(uc), (4,))])
    at = full_at(ud)
    said.append(["UD needs threads", "8 to 16", at, verdict(at, (8, 16))])
    both = all(points[-1].rate >= FULL * points[-1].arriving for points in (uc, ud))
    said.append(["both reach the link's throughput with 16 threads", "yes", "yes" if both else "no", "holds" if both else "does not hold"])
    said.append(["a staging ring of 4 MiB sustains the link (III-D), UD, 16 threads", "yes", f"{small.gbps():.0f} Gbit/s",
                 "holds" if small.rate >= FULL * small.arriving else "does not hold"])
    statements(said)
    print("UD's differences: the table's 1084 cycles of 1.8 GHz are 6.3 GiB/s of 4 KiB chunks, its measured 5.2 are 1310 cycles: a fifth of its time "
          "is in no CQE. Threads: what a core's 16 threads share of caches and memory is not modelled, so that few are enough.")


if __name__ == "__main__":
    main()
