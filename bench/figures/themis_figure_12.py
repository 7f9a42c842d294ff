#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Themis's figure 12: tail completion time of AllReduce and AllToAll against loss on one link, by scheme.

usage: themis_figure_12.py BUILD_FOLDER [--leaves N] [--spines N] [--hosts N] [--scale S] [--losses LIST] [--collectives LIST]
                           [--algorithm NAME] [--ranks ORDER] [--mtu N] [--rules NAME] [--jobs N] [--seeds N]

Runs configs/sim/themis/collectives.yaml. Columns "paper" have what the paper's text states (6.2), nothing read off the plot; it
states ranges over all losses, and values at 1%. All 16 paths are there, so that a flow loses as much as in the paper; of its 16 racks
four, and a fourth of its messages: in less, one timeout of 4 ms is most of a run. The paper's own size is --leaves 16 --scale 1, one to
five minutes for each run of an AllToAll, six and more for one of an AllReduce. In an AllToAll each sends to all others at once, or with
--algorithm pairwise to one after the other; in an AllReduce each group's ring goes through the racks in an order of its own, or with
--ranks in_order all in the same: kernels/themis/README.md says why. It also says what Themis has beyond the paper, which helps it where a
message's last packets are lost: --rules extended goes with that; else it goes by the paper's letter, as figures 13 to 16 do.
"""
from closed_loops import THEMIS_LETTER, arguments, mean, run_all, table

LOSSES = ("0", "0.001%", "0.01%", "0.1%", "1%")
SCHEMES = {"Themis": {}, "SR-AR": {"without": "[spraying]", "balance": "least_queue"},
           "TO-AR": {"without": "[spraying]", "balance": "least_queue", "recovery": "timeout_only"}, "SR-ECMP": {"without": "[spraying]"}}
COLLECTIVES = {"all_reduce": {"size": "1GiB"}, "all_to_all": {"size": "512MiB"}}
# Reductions of the tail completion time by Themis, in percent: at a loss of 1%, and over all losses.
PAPER_AT_1 = {"all_reduce": {"SR-AR": 22.7, "SR-ECMP": 65.6}, "all_to_all": {"SR-AR": 29.3, "SR-ECMP": 66.5}}
PAPER_RANGE = {"all_reduce": {"SR-AR": "22.7 to 35.4", "SR-ECMP": "58.5 to 65.6"},
               "all_to_all": {"SR-AR": "29.3 to 47.3", "SR-ECMP": "58.8 to 66.5"}}


def tail_of_transfers(run):
    return run.workload("collective")["completion"]["p99_ns"]


def main():
    options = arguments(__doc__, leaves=(4, "leaves"), spines=(16, "spines"), hosts=(16, "hosts at a leaf"),
                        scale=(0.25, "share of messages"), losses=(",".join(LOSSES), "losses, with commas between"),
                        collectives=(",".join(COLLECTIVES), "collectives, with commas between"),
                        algorithm=("linear", "AllToAll's, or pairwise"),
                        ranks=("shuffled", "AllReduce's, or in_order"), mtu=(1024, "path MTU"),
                        rules=("letter", "Themis's, or extended"))
    if options.rules not in ("extended", "letter"):
        raise SystemExit("--rules: extended or letter")
    losses = options.losses.split(",")
    for collective in options.collectives.split(","):
        how = dict(COLLECTIVES[collective])
        if collective == "all_to_all":
            how["workloads.collective.algorithm"] = options.algorithm
        else:
            how["ranks"] = options.ranks
        points = [{"collective": collective, **how, "leaves": options.leaves, "spines": options.spines, "hosts": options.hosts,
                   "scale": options.scale, "loss": loss, "mtu": options.mtu, **(THEMIS_LETTER if options.rules == "letter" else {}),
                   **scheme}
                  for loss in losses for scheme in SCHEMES.values()]
        runs = run_all(options, "themis/collectives.yaml", points)
        rows, single = [], []
        for i, loss in enumerate(losses):
            times = {scheme: mean(runs[i * len(SCHEMES) + j], lambda run: run.completion_ns("collective"))
                     for j, scheme in enumerate(SCHEMES)}
            row = [loss, *(f"{times[scheme] / 1000:.0f}" for scheme in SCHEMES), "not modelled"]
            for other in ("SR-AR", "SR-ECMP"):
                row.append(f"{100 * (1 - times['Themis'] / times[other]):.1f}")
                row.append(PAPER_AT_1[collective][other] if loss == "1%" else "-")
            rows.append(row)
            single.append([loss, *(f"{mean(runs[i * len(SCHEMES) + j], tail_of_transfers) / 1000:.0f}" for j in range(len(SCHEMES)))])
        print(f"\n{collective}: tail completion time in microseconds; reductions by Themis in percent")
        table(("loss", *SCHEMES, "Conweave", "less than SR-AR", "paper", "less than SR-ECMP", "paper"), rows)
        print(f"paper, over all losses: {PAPER_RANGE[collective]['SR-AR']} less than SR-AR, "
              f"{PAPER_RANGE[collective]['SR-ECMP']} less than SR-ECMP")
        print(f"\n{collective}: 99th percentile of single transfers in microseconds (12b, 12d; paper: Themis has the best at 1%)")
        table(("loss", *SCHEMES), single)


if __name__ == "__main__":
    main()
