#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SCR's Figure 16: eight flows come one by one, all begin anew each time, and fill by steps of three sizes.

usage: scr_figure_16.py BUILD_FOLDER

The text (A.4): smaller steps come to fairer rates and need more time. It has steps of 0.03, 0.05 and 0.1 (GByte/s, as in Table 5: the README
of kernels/scr) and states no times for them. Columns: after the coming of the third flow and of those behind it, for which a gap of 1 ms is
long enough: how long until no rate is more than a step from the fair one any more; how far rates are from it at the end, at most.
"""
from closed_loops import arguments, run_all, table
from scr_kit import changes, jain

LINE, GAP = 100e9, 1_000_000
STEPS = (0.03, 0.05, 0.1)  # GByte/s


def settle(rates_over_time, flows, step):
    """us until all are within a step of the fair rate for good; the rates before the next flow comes."""
    begin, rates, settled = (flows - 1) * GAP, {}, 0
    for at, qpn, rate in rates_over_time:
        if at >= begin + GAP - 20_000:
            break
        rates[qpn] = rate
        if at > begin and (len(rates) < flows or any(abs(one - LINE / flows) > step for one in rates.values())):
            settled = at
    return max(0, settled - begin) / 1000, list(rates.values())


def main():
    options = arguments(__doc__)
    rows = []
    for step, (run, *_) in zip(STEPS, run_all(options, "scr/figure_16.yaml", [{"step": int(step * 8e9)} for step in STEPS])):
        ends = [(flows, *settle(changes(run, "h0"), flows, step * 8e9)) for flows in range(3, 9)]
        rows.append([step, sum(took for _, took, _ in ends) / len(ends), max(took for _, took, _ in ends),
                     max(abs(rate - LINE / flows) for flows, _, rates in ends for rate in rates) / 1e6,
                     1 - min(jain(rates) for _, _, rates in ends)])
    table(("step, GByte/s", "us until fair, mean", "most", "Mbps from the fair rate, most", "1 - Jain, most"),
          [[f"{a:.2f}", f"{b:.0f}", f"{c:.0f}", f"{d:.0f}", f"{e:.1e}"] for a, b, c, d, e in rows])
    for what, column, rises in (("smaller steps need more time", 1, False), ("smaller steps end at fairer rates", 3, True)):
        values = [row[column] for row in rows]
        print(f"paper: {what}; ours:", "so it is" if values == sorted(values, reverse=not rises) else "NOT so")


if __name__ == "__main__":
    main()
