#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which of DCQCN's parameters meet Themis's figure 2b: the paper's are those of its reference [45], which are not published.

usage: themis_figure_2_fit.py BUILD_FOLDER [--random N] [--within PERCENT]

Runs configs/sim/themis/nacks.yaml with all NACKs passed and with 255 of 256 dropped, for mlx5's defaults, for sets that were found to come near,
and for sets of three parameters at random; --random of those. A set meets 2b if both rates are within --within of the paper's (46.6 and
81% of the link) and its NACKs, 0.48 million a second in the paper, are right to a factor of 2.
"""
import math
import random

from closed_loops import arguments, mean, run_all, table
from themis_figure_2 import nacks, sent

RATES, NACKS = (46.6, 81), 0.48
SETS = ({}, {"clamp_tgt_rate": "true"}, {"rpg_min_rate": "85Gbps"},
        {"rpg_min_rate": "80Gbps", "dce_tcp_rtt": "55us"}, {"rpg_min_rate": "85Gbps", "dce_tcp_rtt": "55us"},
        {"rate_reduce_monitor_period": "1500us", "dce_tcp_rtt": "500us"}, {"rate_reduce_monitor_period": "2ms", "dce_tcp_rtt": "500us"})
# What the random sets draw from, on a logarithmic scale: neither a floor for the rate nor rare reductions, as the last ones above have.
RANGES = {"rpg_time_reset": (3, 3000, "us"), "rpg_byte_reset": (16, 30000, "KB"), "rpg_ai_rate": (5, 30000, "Mbps"),
          "rpg_hai_rate": (50, 50000, "Mbps"), "dce_tcp_rtt": (1, 300, "us"), "rate_reduce_monitor_period": (4, 250, "us"),
          "initial_alpha_value": (20, 1023, "")}


def draw(choice):
    names = choice.sample([*RANGES, "dce_tcp_g", "rpg_min_dec_fac", "clamp_tgt_rate"], 3)
    found = {}
    for name in names:
        if name in RANGES:
            low, high, unit = RANGES[name]
            found[name] = f"{round(low * (high / low) ** choice.random())}{unit}"
    if "dce_tcp_g" in names:
        found["dce_tcp_g"] = 1024 - round(700 ** choice.random())
    if "rpg_min_dec_fac" in names:
        found["rpg_min_dec_fac"] = f"{choice.randint(50, 99)}%"
    if "clamp_tgt_rate" in names:
        found["clamp_tgt_rate"] = "true"
    return found


def evaluate(options, sets, time):
    """Of each set: the two rates, the NACKs, and how far it is from the paper: the larger of the rates' relative errors."""
    points = [{"dropped": dropped, "time": time, **{f"topology.hosts.nic.dcqcn.{name}": value for name, value in one.items()}}
              for one in sets for dropped in ("0", "99.609375%")]
    runs = run_all(options, "themis/nacks.yaml", points)
    found = []
    for i, one in enumerate(sets):
        rates = [100 * mean(runs[2 * i + j], sent) for j in range(2)]
        off = max(abs(ours / paper - 1) for ours, paper in zip(rates, RATES))
        count = mean(runs[2 * i], nacks)
        meets = off <= options.within / 100 and count > 0 and abs(math.log2(count / NACKS)) <= 1
        found.append((one, rates, count, off, meets))
    return found


def show(found):
    table(("all NACKs, % of link", "255/256 dropped", "NACKs, Mpps", "worse error, %", "meets 2b", "parameters"),
          [[f"{rates[0]:.1f}", f"{rates[1]:.1f}", f"{count:.3f}", f"{100 * off:.1f}", "yes" if meets else "no",
            ", ".join(f"{name} {value}" for name, value in one.items()) or "mlx5's defaults"]
           for one, rates, count, off, meets in found])


def main():
    options = arguments(__doc__, random=(100, "random sets"), within=(10, "percent"))
    print(f"paper: {RATES[0]}, {RATES[1]}, {NACKS}; 20 ms each")
    show(evaluate(options, SETS, "20ms"))
    choice = random.Random(1)
    found = evaluate(options, [draw(choice) for _ in range(options.random)], "5ms")
    close = [one for one in found if one[3] <= options.within / 100]
    enough = [one for one in found if one[2] >= NACKS / 2]
    print(f"\n{len(found)} random sets, 5 ms each: {sum(one[4] for one in found)} meet 2b; {len(close)} have both rates within {options.within}%, "
          f"{len(enough)} the NACKs. The nearest of either:")
    show(sorted(close, key=lambda one: -one[2])[:3] + sorted(enough, key=lambda one: one[3])[:3])


if __name__ == "__main__":
    main()
