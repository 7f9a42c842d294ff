#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SCR's Figure 18b: a flow under Swift beside a background of 20, 40 and 60 Gbps.

usage: scr_figure_18.py BUILD_FOLDER

The text: Swift comes to the bandwidth that is left. (18a, the target delay, is judged by its closed form: tests/unit/scr/swift_test.cc.)
"""
from closed_loops import arguments, run_all, table
from scr_kit import gbps


def main():
    options = arguments(__doc__)
    backgrounds = (20, 40, 60)
    runs = run_all(options, "scr/swift.yaml", [{"background": f"{one}Gbps"} for one in backgrounds])
    share = 1024 / 1098  # of the wire that is payload
    rows = [[one, f"{100 * share - one:.1f}", f"{gbps(run, 'swift'):.1f}", f"{gbps(run, 'background'):.1f}"]
            for one, (run, *_) in zip(backgrounds, runs)]
    table(("background, Gbps", "left of the line", "ours", "background got"), rows)


if __name__ == "__main__":
    main()
