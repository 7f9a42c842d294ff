#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SCR's Figure 14: a dequeue rate governs what is sent, what the peer receives, and what is read from the host.

usage: scr_figure_14.py BUILD_FOLDER

The text has no numbers: all three follow the rate. Bytes read over PCIe are those of the payload.
"""
from closed_loops import arguments, run_all, table
from scr_kit import gbps, kernel

SECONDS = 2e-3  # and what is posted at the end: 16 messages


def main():
    options = arguments(__doc__)
    shares = (100, 250, 500, 750, 1000)
    rows = []
    for share, (run, *_) in zip(shares, run_all(options, "scr/figure_14.yaml", [{"share": one} for one in shares])):
        sent, came = (kernel(run, one)["counters"][name] * 8 / SECONDS / 1e9
                      for one, name in (("h0", "tx_roce_bytes"), ("h1", "rx_roce_bytes")))
        rows.append([share / 10, f"{sent:.1f}", f"{came:.1f}", f"{gbps(run, 'flow'):.1f}"])
    table(("dequeue rate, Gbps", "sent", "received", "payload, read over PCIe"), rows)


if __name__ == "__main__":
    main()
