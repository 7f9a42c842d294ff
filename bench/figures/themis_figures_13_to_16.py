#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Themis's ablations, figures 13 to 16: what completion takes longer without a part of the design, and what it costs.

usage: themis_figures_13_to_16.py BUILD_FOLDER [--leaves N] [--hosts N] [--scale S] [--jobs N] [--seeds N]

Runs configs/sim/themis/collectives.yaml, by the paper's letter (stashes do not age and retransmissions after a timeout keep their
path). Of figure 13 both runs have switches learn of queue pairs from their packets: the first ones are not sprayed, so paths are unequal.
Where all queue pairs are known (`rdma_cm`), four leaves reorder too little for the path check to matter. Columns "paper" have what
the text of 6.3 states. Of figure 16 it states 8% for the loss of a link.
"""
from closed_loops import arguments, mean, run_all, table

# Figure, part, settings with and without it, settings without it, the counter that grows; and what the paper states of both
# collectives, in percent.
ABLATIONS = (("13", "path check", {"loss": "0.001%", "rdma_cm": "false"}, {"without": "[path_check]"}, "packet_seq_err", (44.7, 62.7)),
             ("14", "lazy dropping", {"loss": "1%"}, {"without": "[lazy_dropping]"}, "local_ack_timeout_err", (16.9, 78.3)),
             ("15", "rerouting", {"loss": "1%"}, {"without": "[rerouting]"}, "local_ack_timeout_err", (57.2, 47.7)))
COLLECTIVES = {"all_reduce": "1GiB", "all_to_all": "512MiB"}


def duration(run):
    return run.completion_ns("collective")


def main():
    options = arguments(__doc__, leaves=(4, "leaves and spines"), hosts=(4, "hosts at a leaf"), scale=(0.0078125, "share of messages"),
                        cut=(200, "figure 16: microseconds until the link goes down"))
    base = {"leaves": options.leaves, "spines": options.leaves, "hosts": options.hosts, "scale": options.scale,
            "reroute_timeouts": "false", "topology.switches.switch.themis.stash_timeout": "0"}
    points = [{**base, "collective": collective, "size": size, **always, **settings}
              for _, _, always, without, _, _ in ABLATIONS for collective, size in COLLECTIVES.items() for settings in ({}, without)]
    # Data alone is lost: routing moves ACKs elsewhere, and what Themis sprays is for Themis to find out.
    cut = {"schedule": f"{{cut: {{at: {options.cut}us, links: {{leaf0_spine0: {{match: {{kind: data}}, loss: 100%}}}}}}}}"}
    points += [{**base, **settings} for settings in ({}, cut, {**cut, "ooo_threshold": 0, "sim.time": "100ms", "expect": "[]"})]
    runs = run_all(options, "themis/collectives.yaml", points)
    rows = []
    at = 0
    for figure, part, always, _, counter, paper in ABLATIONS:
        for collective, stated in zip(COLLECTIVES, paper):
            whole, ablated = runs[at], runs[at + 1]
            at += 2
            rows.append([figure, part, collective, always["loss"], f"{mean(whole, duration) / 1000:.0f}", f"{mean(ablated, duration) / 1000:.0f}",
                         f"{100 * (mean(ablated, duration) / mean(whole, duration) - 1):.1f}", stated, counter,
                         f"{mean(whole, lambda run: run.count(counter)):.0f}", f"{mean(ablated, lambda run: run.count(counter)):.0f}"])
    table(("figure", "without", "collective", "loss", "whole, us", "without, us", "longer by %", "paper", "counter", "whole", "without"),
          rows)
    healthy, handled, unhandled = (mean(one, duration) / 1000 for one in runs[at:])
    print(f"\nfigure 16: a ToR-to-spine link goes down {options.cut} us into an AllReduce")
    table(("no failure, us", "with handling, us", "longer by %", "paper", "without handling, us"),
          [[f"{healthy:.0f}", f"{handled:.0f}", f"{100 * (handled / healthy - 1):.1f}", 8, f"{unhandled:.0f}"]])


if __name__ == "__main__":
    main()
