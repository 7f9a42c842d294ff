#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Allgather's figure 14: how the receive side scales with threads, 4 KiB chunks; instructions a cycle of one core.

usage: allgather_figure_14.py BUILD_FOLDER [--jobs N]

Runs configs/sim/allgather/dpa_receive.yaml: a Broadcast to a leaf whose DPA runs the collective's own handlers. The wire is no
limit, so the threads are. Fitted is Table I alone; "paper" is what the
text of VI-C and Table I state, nothing read off the plot.
"""
from dpa_receive import CLOCK, TABLE_1, UC, UD, arguments, error, handlers, statements, table

THREADS = (1, 2, 4, 8, 16)


def main():
    options = arguments(__doc__)
    wide = {"rate": 3200e9, "size": 16 << 20}
    uc = handlers(options, "uc", THREADS, **wide)
    ud = handlers(options, "ud", THREADS, **wide)
    rows = []
    for n, a, b in zip(THREADS, uc, ud):
        rows.append([n, f"{a.rate / 1e6:.2f}", f"{a.rate / uc[0].rate:.2f}", f"{b.rate / 1e6:.2f}", f"{b.rate / ud[0].rate:.2f}"])
    table(("threads", "UC, M chunks/s", "to one", "UD, M chunks/s", "to one"), rows)
    said = []
    for name, points, cost in (("UC", uc, UC), ("UD", ud, UD)):
        ipc = points[0].rate * cost["instructions"] / CLOCK
        said.append([f"{name}, one thread, instructions a cycle", TABLE_1[name][3], f"{ipc:.3f}", error(ipc, TABLE_1[name][3])])
    ratio = uc[0].rate / ud[0].rate
    said.append(["UD's critical path to UC's", "about 2", f"{ratio:.2f}", error(ratio, 2)])
    hidden = all(points[2].rate > 3.5 * points[0].rate for points in (uc, ud))
    said.append(["threads hide the latency of one (4 threads to one)", "yes", f"{uc[2].rate / uc[0].rate:.2f}, {ud[2].rate / ud[0].rate:.2f}",
                 "holds" if hidden else "does not hold"])
    statements(said)


if __name__ == "__main__":
    main()
