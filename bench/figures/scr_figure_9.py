#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SCR's Figure 9: eight flows that come one by one, and three ways in which water filling receives them.

usage: scr_figure_9.py BUILD_FOLDER

The text (5.1): a new flow begins at 1/n of the line, the others keep (n-1)/n; that way is efficient in fairness and in the time to
convergence. Columns: how long after each flow's coming all rates are within a step of the fair ones for good, and Jain's index of
the rates 100 us after it.
"""
from closed_loops import arguments, run_all, table
from scr_kit import changes, jain

STEP, LINE, GAP = 400_000_000, 100e9, 1_000_000
WAYS = ("all begin anew", "others scale, new from start", "others scale, new at 1/n (the paper's)")


def main():
    options = arguments(__doc__)
    runs = run_all(options, "scr/figure_9.yaml", [{"arrivals": way} for way in range(3)])
    rows = []
    for way, (run, *_) in zip(WAYS, runs):
        took, fairness = [], []
        for flows in range(2, 9):
            begin = (flows - 1) * GAP
            rates, settled, at_100us = {}, 0, 0.0
            for at, qpn, rate in changes(run, "h0"):
                if at >= begin + GAP - 20_000:
                    break
                if at > begin + 100_000 and not at_100us and len(rates) == flows:
                    at_100us = jain(list(rates.values()))
                rates[qpn] = rate
                if at > begin and (len(rates) < flows or any(abs(one - LINE / flows) > STEP for one in rates.values())):
                    settled = at
            fairness.append(at_100us or jain(list(rates.values())))
            took.append(max(0, settled - begin) / 1000)
        rows.append([way, f"{sum(took) / len(took):.0f}", f"{max(took):.0f}", f"{min(fairness):.3f}"])
    table(("flows that come", "us until fair, mean", "most", "Jain 100 us later, least"), rows)
    print("paper: the third way is the quickest and the fairest;",
          "ours:", "so it is" if float(rows[2][1]) <= min(float(row[1]) for row in rows) else "NOT so")


if __name__ == "__main__":
    main()
