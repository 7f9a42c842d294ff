#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SCR's Figure 2b: events a second that a program is told of, by the load of the link.

usage: scr_figure_2.py BUILD_FOLDER

The text: the DPA receives packet-granular events; those of loss and congestion are rare. Here nothing is taken together (`none`) but
what comes to a full queue: 64 threads of 4 us take 16 million events a second, and each flow has one. Compared are packets of data that left
and TX events that were handled.
"""
from closed_loops import arguments, run_all, table
from scr_kit import gbps, kernel

FLOWS = 64
LOADS = (10, 25, 50, 75, 90)  # percent of the line


def main():
    options = arguments(__doc__)
    points = [{"qps": FLOWS, "strategy": "none", "load": f"{int(load * 1e9 / FLOWS)}bps"} for load in LOADS]
    rows, share = [], []
    for load, (run, *_) in zip(LOADS, run_all(options, "scr/figure_10.yaml", points)):
        count = kernel(run, "h0")["counters"]
        packets = count["tx_roce_packets"]  # h0 sends data alone
        seconds = run.workload("flows")["duration_ns"] / 1e9
        share.append(count["scr_tx_events_handled"] / packets)
        rows.append([load, f"{gbps(run, 'flows'):.1f}", f"{packets / seconds / 1e6:.2f}",
                     f"{count['scr_tx_events_handled'] / seconds / 1e6:.2f}", count["rp_cnp_handled"], count["packet_seq_err"]])
    table(("load, %", "goodput, Gbps", "M packets/s", "M TX events/s", "CNPs", "NACKs"), rows)
    print("paper: an event for each packet; ours: between", f"{min(share):.3f} and {max(share):.3f} for each")


if __name__ == "__main__":
    main()
