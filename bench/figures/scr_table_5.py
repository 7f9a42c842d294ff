#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SCR's Table 5 (and Figure 16): time until eight flows that begin together have stable rates, by the step of water filling.

usage: scr_table_5.py BUILD_FOLDER

Time is from the first rate that takes effect to when all rates are within a step of an eighth of the line.
"""
from closed_loops import arguments, run_all, table
from scr_kit import changes, explain, jain

PAPER = {0.02: 294, 0.05: 122, 0.10: 49}  # GByte/s: us


def main():
    options = arguments(__doc__)
    steps = list(PAPER)
    runs = run_all(options, "scr/table_5.yaml", [{"step": int(step * 8e9)} for step in steps])
    rows = []
    for step, (run, *_) in zip(steps, runs):
        rates, begin, settled = {}, None, 0
        for at, qpn, rate in changes(run, "h0"):
            if at > 1_500_000:  # flows end from here on
                break
            begin = at if begin is None else begin
            rates[qpn] = rate
            if len(rates) < 8 or any(abs(one - 12.5e9) > step * 8e9 for one in rates.values()):
                settled = at
        ours = (settled - (begin or 0)) / 1000
        rows.append([f"{step:.2f}", PAPER[step], f"{ours:.0f}", f"{100 * (ours / PAPER[step] - 1):+.0f}%", f"{jain(list(rates.values())):.4f}"])
    table(("step, GByte/s", "us: paper", "ours", "difference", "Jain at the end"), rows)
    for step, row in zip(steps, rows):
        explain(f"step of {step:.2f} GByte/s", PAPER[step], float(row[2]),
                f"{(12.5e9 - 0.5e9) / (step * 8e9):.0f} steps of 4 us are {(12.5e9 - 0.5e9) / (step * 8e9) * 4:.0f} us, which the paper has; but a flow at 0.5 Gbps sends a packet "
                "each 17.7 us, and its next rate is in force 17 us after that (Figure 22): the first steps wait for packets, and at the end a rate is seen "
                "17 us late", " us")


if __name__ == "__main__":
    main()
