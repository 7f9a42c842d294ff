#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SCR's Figure 22: from a TX event to the rate in force, and from a decision to the next round-trip time.

usage: scr_figure_22.py BUILD_FOLDER

The text: up to 7 us to trigger, 4 us for Swift's law, up to 6 us to install; up to 10 us beside the fabric's delay for a probe. These are
the model's defaults, so what is shown is that nothing else is added: the first change of a rate, and the period of Swift's probes.
"""
from closed_loops import arguments, run_all, table
from scr_kit import changes


def main():
    options = arguments(__doc__)
    first = changes(run_all(options, "scr/table_5.yaml", [{}])[0][0], "h0")[0][0]
    times = [at for at, _, _ in changes(run_all(options, "scr/swift.yaml", [{"background": "60Gbps"}])[0][0], "sender")]
    periods = sorted(after - before for before, after in zip(times, times[1:]) if after > before)
    rows = [["first TX to first rate, us", "7 + 4 + 6 = 17", f"{first / 1000:.2f}"],
            ["a probe to the next, us", "10 + 4 + fabric", f"{periods[len(periods) // 2] / 1000:.2f}"]]
    table(("", "paper", "ours"), rows)


if __name__ == "__main__":
    main()
