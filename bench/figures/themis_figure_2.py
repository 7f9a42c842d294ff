#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Themis's figure 2: what unnecessary NACKs cost a sender that recovers as ConnectX does, against the share of them dropped.

usage: themis_figure_2.py BUILD_FOLDER [--stall NS] [--jobs N] [--seeds N]

Runs configs/sim/themis/nacks.yaml: transmit rate of one sender as a share of its link, and goodput as a share of what it transmits,
with DCQCN (2b) and without (2c). --stall is the fitted time for which a queue pair stands still after a retransmission: figure 2c
shows a loss of rate without a cause. Columns "paper" have what the text of 2.3 states.
"""
from closed_loops import arguments, mean, run_all, table

DROPPED = {"0": "0", "1/2": "50%", "15/16": "93.75%", "255/256": "99.609375%", "all": "100%"}
LINK_BITS_PER_SECOND = 100e9
PAPER_RATE = {("true", "0"): 46.6, ("true", "255/256"): 81, ("true", "all"): 100, ("false", "0"): 50, ("false", "all"): 100}
PAPER_GOODPUT = {("false", "0"): 93.5}
PAPER_NACKS = {("true", "0"): 0.48}


def sent(run):
    """The share of its link that the sender transmits."""
    return next(row["share"] for row in run.report["utilisation"] if row["from"].startswith("h0."))


def own(run):
    return next(iter(run.report["devices"]["h0"]["kernels"].values()))["counters"]


def useful(run):
    return 1 - own(run)["retransmitted_packets"] / own(run)["tx_roce_packets"]


def nacks(run):
    """Millions a second."""
    return own(run)["packet_seq_err"] * 1e3 / run.report["run"]["span_ns"]


def main():
    options = arguments(__doc__, stall=(4000, "nanoseconds"))
    points = [{"dcqcn": dcqcn, "dropped": share, "stall": f"{options.stall}ns"} for dcqcn in ("true", "false")
              for share in DROPPED.values()]
    runs = run_all(options, "themis/nacks.yaml", points)
    rows = []
    for i, (dcqcn, dropped) in enumerate((dcqcn, dropped) for dcqcn in ("true", "false") for dropped in DROPPED):
        rows.append(["on" if dcqcn == "true" else "off", dropped, f"{100 * mean(runs[i], sent):.1f}",
                     PAPER_RATE.get((dcqcn, dropped), "-"), f"{100 * mean(runs[i], useful):.1f}",
                     PAPER_GOODPUT.get((dcqcn, dropped), "-"), f"{mean(runs[i], nacks):.3f}", PAPER_NACKS.get((dcqcn, dropped), "-")])
    table(("DCQCN", "NACKs dropped", "rate, % of link", "paper", "not sent again, %", "paper", "NACKs, Mpps", "paper"), rows)


if __name__ == "__main__":
    main()
