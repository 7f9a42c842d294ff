#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SCR's Figure 20: a receiver's credits beside a background of up to 16 senders of 5 Gbps, and its backpressure.

usage: scr_figure_20.py BUILD_FOLDER

The text: the sender with credits takes what is left in all settings (20a, b); backpressure cuts the rate at once, and it comes back
by additive increase (20c).
"""
from closed_loops import arguments, run_all, table
from scr_kit import changes, explain, gbps


def main():
    options = arguments(__doc__)
    others = (1, 4, 8, 12, 16)
    rows = []
    for one, (run, *_) in zip(others, run_all(options, "scr/credits.yaml", [{"others": one} for one in others])):
        background, granted = gbps(run, "background"), gbps(run, "granted")
        rows.append([one, f"{background:.1f}", f"{100 * 1024 / 1098 - background:.1f}", f"{granted:.1f}", f"{background + granted:.1f}"])
    table(("background senders", "Gbps", "left of the line", "ours", "together"), rows)
    for one, _, left, ours, _ in rows:
        explain(f"beside {one} senders, of what is left", float(left), float(ours),
                "a receiver grants 95% of its port (`headroom`) less what it sees: the 5 points are of the port, and count for more the less is left", " Gbps")
    run = run_all(options, "scr/backpressure.yaml", [{}])[0][0]
    rates = [rate / 1e9 for _, _, rate in changes(run, "h0")]
    cuts = [i for i in range(1, len(rates)) if 0 < rates[i] < 0.6 * rates[i - 1]]
    rises = [rates[i] - rates[i - 1] for i in range(1, len(rates)) if rates[i] > rates[i - 1]]
    print(f"backpressure: {len(cuts) + 1} cuts to half, then {len(rises)} rises of {min(rises):.2f} Gbps")


if __name__ == "__main__":
    main()
