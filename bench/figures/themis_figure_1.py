#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Themis's figure 1: what the timeout-only mechanism costs: tail completion time of AllReduces against loss on one link.

usage: themis_figure_1.py BUILD_FOLDER [--leaves N] [--hosts N] [--scale S] [--jobs N] [--seeds N]

Runs configs/sim/themis/collectives.yaml as TO-AR (adaptive routing, an RTO of 4 ms). The paper's text states no number of this
figure: that the time increases significantly with the loss. The paper's own size is --leaves 16 --scale 1.
"""
from closed_loops import arguments, mean, run_all, table

LOSSES = ("0", "0.001%", "0.01%", "0.1%")
SIZES = ("512MiB", "1GiB", "2GiB")


def main():
    options = arguments(__doc__, leaves=(4, "leaves and spines"), hosts=(0, "hosts at a leaf; 0: as many as leaves"), scale=(0.0078125, "share of messages"))
    points = [{"size": size, "leaves": options.leaves, "spines": options.leaves, "hosts": options.hosts or options.leaves, "scale": options.scale,
               "loss": loss, "without": "[spraying]", "balance": "least_queue", "recovery": "timeout_only"}
              for loss in LOSSES for size in SIZES]
    runs = run_all(options, "themis/collectives.yaml", points)
    rows = [[loss, *(f"{mean(runs[i * len(SIZES) + j], lambda run: run.completion_ns('collective')) / 1000:.0f}"
                     for j in range(len(SIZES)))] for i, loss in enumerate(LOSSES)]
    print("tail completion time in microseconds, of so much a host times the scale")
    table(("loss", *SIZES), rows)


if __name__ == "__main__":
    main()
