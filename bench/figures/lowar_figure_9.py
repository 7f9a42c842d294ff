#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""LoWAR's figure 9: goodput over a lossy long-haul link against loss, with 1 and 16 connections and RTTs of 40 and 80 ms.

usage: lowar_figure_9.py BUILD_FOLDER [--time TIME] [--jobs N] [--seeds N]

Runs configs/sim/lowar/goodput.yaml: our NIC with go-back-N in the place of the ConnectX-5, alone and between LoWAR gateways. Columns
"paper" have what the text states (II and VI): some numbers of CX-5, and ratios of LoWAR(32, 1) to it.
"""
from closed_loops import arguments, mean, run_all, table

LOSSES = ("0", "0.001%", "0.01%", "0.1%")
SCHEMES = {"CX-5": "{path: host <-> wan}",
           "LoWAR(32, 1)": "{pipeline: wan_gateway, kernels: {lowar: {r: 32, c: 1, roce_mtu: 1024, reorder: 0}}}",
           "LoWAR(8, 1)": "{pipeline: wan_gateway, kernels: {lowar: {r: 8, c: 1, roce_mtu: 1024, reorder: 0}}}"}
RTTS = {40: {"delay": "20ms", "window": 50000, "rto": "150ms"}, 80: {"delay": "40ms", "window": 100000, "rto": "250ms"}}
# Gbit/s of CX-5 with one connection and 40 ms; ratios of LoWAR(32, 1): a range over losses is written with its ends.
PAPER_CX5 = {(1, 40, "0"): 9.21, (1, 40, "0.001%"): 2.92}
PAPER_RATIO = {(1, 40, "0.001%"): "2.05 to 5.01", (1, 40, "0.01%"): "2.05 to 5.01", (1, 80, "0.001%"): "11.55 to 19.07",
               (1, 80, "0.01%"): "11.55 to 19.07", (16, 40, "0.01%"): 1.28, (16, 80, "0.01%"): 1.50}


def main():
    options = arguments(__doc__, time=("2s", "simulated time of a run"))
    places = [(qp, rtt, loss) for qp in (1, 16) for rtt in RTTS for loss in LOSSES]
    # What is queued when the time is over is sent, too, and 16 connections queue as much as one.
    points = [{"qp": qp, "size": "1MB" if qp == 1 else "64KiB", "loss": loss, "time": options.time, "gateway": gateway, **RTTS[rtt]} for qp, rtt, loss in places
              for gateway in SCHEMES.values()]
    runs = run_all(options, "lowar/goodput.yaml", points)
    rows = []
    for i, place in enumerate(places):
        rates = [mean(runs[i * len(SCHEMES) + j], lambda run: run.workload("write_bw")["goodput_bits_per_second"]) / 1e9
                 for j in range(len(SCHEMES))]
        rows.append([*place, f"{rates[0]:.2f}", PAPER_CX5.get(place, "-"), f"{rates[1]:.2f}", f"{rates[2]:.2f}",
                     f"{rates[1] / rates[0]:.2f}" if rates[0] else "-", PAPER_RATIO.get(place, "-")])
    print("goodput in Gbit/s")
    table(("connections", "RTT, ms", "loss", "CX-5", "paper", "LoWAR(32, 1)", "LoWAR(8, 1)", "LoWAR(32, 1) / CX-5", "paper"), rows)


if __name__ == "__main__":
    main()
