#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Allgather's figure 16: chunks a second that the receive side sustains, chunks of 64 B, up to half of the DPA.

usage: allgather_figure_16.py BUILD_FOLDER [--jobs N]

Runs configs/sim/allgather/dpa_receive.yaml: a Broadcast to a leaf whose DPA runs the collective's own handlers. Chunks are
of 64 B of UC, and of 256 B of UD, whose datagrams are a path MTU. Fitted is Table I alone; "paper" is what the text of VII states, nothing read off the plot.
"""
from dpa_receive import RATE_1600, arguments, error, handlers, statements, table

THREADS = (16, 32, 64, 128)


def main():
    options = arguments(__doc__)
    uc = handlers(options, "uc", THREADS, chunk=64, rate=400e9, size=2 << 20)
    ud = handlers(options, "ud", THREADS, chunk=64, rate=400e9, size=8 << 20)
    rows = [[n, f"{a.rate / 1e6:.1f}", f"{a.gbps(4096):.0f}", f"{b.rate / 1e6:.1f}", f"{b.gbps(4096):.0f}"] for n, a, b in zip(THREADS, uc, ud)]
    table(("threads", "UC, M chunks/s", "as Gbit/s of 4 KiB", "UD, M chunks/s", "as Gbit/s of 4 KiB"), rows)
    said = []
    for name, points in (("UC", uc), ("UD", ud)):
        rate = points[-1].rate
        said.append([f"{name}: 128 threads sustain 1600 Gbit/s, M chunks/s", f"at least {RATE_1600 / 1e6:.1f}",
                     f"{rate / 1e6:.1f} ({error(rate, RATE_1600)})", "holds" if rate >= RATE_1600 else "does not hold"])
    statements(said)
    print("128 threads do more than is asked for: memory that they share is not modelled.")


if __name__ == "__main__":
    main()
