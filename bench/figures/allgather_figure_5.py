#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Allgather's figure 5: one core of a DPA, 16 threads, against one CPU core, receiving datagrams of 4 KiB at 200 Gbit/s.

usage: allgather_figure_5.py BUILD_FOLDER [--jobs N]

Runs configs/sim/allgather/dpa_receive.yaml: the collective's own handlers. The CPU's side, UCX and a progress engine on an EPYC core, is not
modelled: "ours" has the DPA alone. "paper" is what the text of II-B and VII states, nothing read off the plot.
"""
from dpa_receive import arguments, handlers, statements

CORE = 16  # threads


def main():
    options = arguments(__doc__)
    ud, = handlers(options, "ud", (CORE,))
    share = ud.rate / ud.arriving
    statements([("one DPA core scales to the peak throughput", "yes", f"{ud.gbps():.0f} Gbit/s, {100 * share:.0f}% of what comes",
                 "holds" if share >= 0.95 else "does not hold"),
                ("one CPU core cannot sustain 200 Gbit/s", "1/2 to 2/3 of it", "not modelled", "-")])


if __name__ == "__main__":
    main()
