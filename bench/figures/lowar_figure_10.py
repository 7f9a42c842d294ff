#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""LoWAR's figure 10: completion times of messages of 1 MB over a lossy long-haul link with an RTT of 40 ms, against loss.

usage: lowar_figure_10.py BUILD_FOLDER [--messages N] [--jobs N] [--seeds N]

Runs configs/sim/lowar/completion.yaml: our NIC with go-back-N in the place of the ConnectX-5, alone and between LoWAR(32, 1)
gateways. Messages go to and fro as ib_write_lat sends them, and a time is until the receiver has all; where the paper's clock
stops it does not say. Columns "paper" have what the text of VI states.
"""
from closed_loops import arguments, mean, run_all, table

LOSSES = ("0", "0.001%", "0.01%", "0.05%", "0.1%")
SCHEMES = ("{path: host <-> wan}", "{pipeline: wan_gateway, kernels: {lowar: {r: 32, c: 1, roce_mtu: 1024, reorder: 0}}}")
PAPER_LONGER = {"0.01%": 12, "0.05%": 97}


def main():
    options = arguments(__doc__, messages=(500, "messages of a run, one after the other"))
    points = [{"loss": loss, "messages": options.messages, "gateway": gateway} for loss in LOSSES for gateway in SCHEMES]
    runs = run_all(options, "lowar/completion.yaml", points)
    rows = []
    for i, loss in enumerate(LOSSES):
        # Client and server send in turn; a message's time is until its receiver has it.
        pair = runs[2 * i:2 * i + 2]
        times = {"mean": [mean(one, lambda run: run.workload("write_lat")["duration_ns"]) / 2e6 / options.messages for one in pair],
                 "p99": [mean(one, lambda run: run.workload("write_lat")["details"]["t_p99_ns"]) / 1e6 for one in pair]}
        rows.append([loss, *(f"{time:.1f}" for time in times["mean"]), f"{100 * (times['mean'][0] / times['mean'][1] - 1):.0f}",
                     PAPER_LONGER.get(loss, "-"), *(f"{time:.1f}" for time in times["p99"])])
    print("completion times in ms")
    table(("loss", "CX-5, mean", "LoWAR, mean", "CX-5 longer by %", "paper", "CX-5, p99", "LoWAR, p99"), rows)


if __name__ == "__main__":
    main()
