#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Themis's ablations, figures 13 to 16: what completion takes longer without a part of the design, and what it costs.

usage: themis_figures_13_to_16.py BUILD_FOLDER [--leaves N] [--spines N] [--hosts N] [--scale S] [--mtu N]
                                 [--algorithm NAME] [--collectives LIST] [--jobs N] [--seeds N]

Runs configs/sim/themis/collectives.yaml, by the paper's letter: stashes do not age and retransmissions after a timeout keep their
path. Columns "paper" have what the text of 6.3 states, and of figure 16 the 8% for the loss of a link. What the text leaves open is
decided in kernels/themis/README.md: packets of 1 KiB, and an AllToAll in which each sends to all others at once (or with --algorithm
pairwise to one after the other). All 16 paths are there, so that a flow loses as much as in the paper; of its 16 racks four. Figure
16 is of an AllReduce, and is left out with --collectives all_to_all.
"""
from closed_loops import THEMIS_LETTER, arguments, mean, run_all, table

# Figure, part, settings with and without it, settings without it, and what the paper states of both collectives, in percent.
ABLATIONS = (("13", "path check", {"loss": "0.001%"}, {"without": "[path_check]"}, (44.7, 62.7)),
             ("14", "lazy dropping", {"loss": "1%"}, {"without": "[lazy_dropping]"}, (16.9, 78.3)),
             ("15", "rerouting", {"loss": "1%"}, {"without": "[rerouting]"}, (57.2, 47.7)))
COLLECTIVES = {"all_reduce": {"size": "1GiB"}, "all_to_all": {"size": "512MiB"}}
GIGABYTE = 1 << 30
LINK_BITS = 200e9
ROWS_16B = 24


def duration(run):
    return run.completion_ns("collective")


def naks_at_one(run):
    """Of the NIC that got most: figure 13b has those of the queue pair that got most."""
    counters = [kernel["counters"] for device in run.report["devices"].values() for kernel in device["kernels"].values()]
    return max(one.get("packet_seq_err", 0) for one in counters)


def ablations(options, base):
    points, places = [], {}

    def place(settings):
        key = tuple(sorted(settings.items()))
        if key not in places:
            places[key] = len(points)
            points.append(settings)
        return places[key]

    wanted = []
    for figure, part, always, without, paper in ABLATIONS:
        for (collective, how), stated in zip(COLLECTIVES.items(), paper):
            if collective not in options.collectives.split(","):
                continue
            if collective == "all_to_all":
                how = {**how, "workloads.collective.algorithm": options.algorithm}
            settings = {**base, "collective": collective, **how, **always}
            wanted.append((figure, part, collective, always["loss"], stated, place(settings), place({**settings, **without})))
    runs = run_all(options, "themis/collectives.yaml", points)
    rows = []
    for figure, part, collective, loss, stated, one, other in wanted:
        whole, ablated = runs[one], runs[other]
        row = [figure, part, collective, loss, f"{mean(whole, duration) / 1000:.0f}", f"{mean(ablated, duration) / 1000:.0f}",
               f"{100 * (mean(ablated, duration) / mean(whole, duration) - 1):.1f}", stated]
        for value in naks_at_one, lambda run: run.count("local_ack_timeout_err"):
            row += [f"{mean(whole, value):.0f}", f"{mean(ablated, value):.0f}"]
        rows.append(row)
    table(("figure", "without", "collective", "loss", "whole, us", "without, us", "longer by %", "paper", "NACKs at one NIC, whole", "without",
           "timeouts, whole", "without"), rows)


def uplinks(run):
    """Beginnings of samples, in ns, and in each the mean load of leaf 0's uplinks but the one that goes down, in Gbit/s of all."""
    series = run.report["series"]
    loads = [values for name, values in series["utilisation"].items()
             if name.startswith("leaf0_spine") and " from leaf0." in name and not name.startswith("leaf0_spine0 ")]
    return series["at_ns"], [sum(load) * LINK_BITS / 1e9 for load in zip(*loads)]


def failure(options, base):
    ideal = 2 * (options.leaves - 1) / options.leaves * GIGABYTE * options.scale * 8 / LINK_BITS * 1e9
    at = round(ideal * 0.3)
    # Data alone is lost: routing moves ACKs elsewhere, and what Themis sprays is for Themis to find out.
    cut = {"schedule": f"{{cut: {{at: {at}ns, links: {{leaf0_spine0: {{match: {{kind: data}}, loss: 100%}}}}}}}}"}
    unhandled = {**cut, "ooo_threshold": 0, "sim.time": f"{round(3 * ideal)}ns", "expect": "[]"}
    runs = run_all(options, "themis/collectives.yaml", [{**base, **settings} for settings in ({}, cut, unhandled)])
    healthy, handled = (mean(one, duration) / 1000 for one in runs[:2])
    print(f"\nFigure 16a: a ToR-to-spine link goes down {at / 1000:.0f} us into an AllReduce. One of {options.spines} uplinks less alone makes it "
          f"{100 / (options.spines - 1):.1f}% longer than that, and less where a part is over. Without failure handling the run is cut off.")
    table(("no failure, us", "with handling, us", "longer by %", "paper", "without handling, us"),
          [[f"{healthy:.0f}", f"{handled:.0f}", f"{100 * (handled / healthy - 1):.1f}", 8,
            "more than " + f"{mean(runs[2], duration) / 1000:.0f}"]])
    print("\nFigure 16b: mean throughput of the leaf's uplinks, the dead one counted as 0, in Gbit/s each")
    rows = []
    times, with_it = uplinks(runs[1][0])
    others, without_it = uplinks(runs[2][0])
    step = max(1, len(times) // ROWS_16B)
    for first in range(0, len(times) - step + 1, step):
        begin, end = times[first], times[first] + step * (times[1] - times[0])
        later = [load for time, load in zip(others, without_it) if begin <= time < end]
        rows.append([f"{begin / 1000:.0f}", f"{sum(with_it[first:first + step]) / step / options.spines:.1f}",
                     f"{sum(later) / len(later) / options.spines:.1f}" if later else "-"])
    table(("from, us", "with handling", "without"), rows)


def main():
    options = arguments(__doc__, leaves=(4, "leaves"), spines=(16, "spines"), hosts=(16, "hosts at a leaf"),
                        scale=(0.03125, "share of messages"), mtu=(1024, "path MTU"),
                        algorithm=("linear", "AllToAll's, or pairwise"),
                        collectives=(",".join(COLLECTIVES), "collectives, with commas between"))
    base = {"leaves": options.leaves, "spines": options.spines, "hosts": options.hosts, "scale": options.scale, "mtu": options.mtu,
            **THEMIS_LETTER}
    ablations(options, base)
    if "all_reduce" in options.collectives.split(","):
        failure(options, base)


if __name__ == "__main__":
    main()
