#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SCR's Figure 18: how the target delay follows the rate (a); a flow under Swift beside a background of 20, 40 and 60 Gbps (b).

usage: scr_figure_18.py BUILD_FOLDER

The text: the target follows Swift's law, with a base of 1 us, one hop of 2 us, a range of 2 us, 32 and 96 Gbps (18a: the policy's own
function beside the closed form); Swift comes to the bandwidth that is left (18b).
"""
import ctypes

from closed_loops import arguments, run_all, table
from scr_kit import explain, gbps


BASE, HOPS, PER_HOP, RANGE, MIN_RATE, MAX_RATE, MTU = 1000, 1, 2000, 2000, 32_000_000_000, 96_000_000_000, 1024
RTT = 4000  # ns
AT_ONCE = {"trigger": 0, "law": 0, "install": 0, "probe": 0}


def target(rate):
    """Swift, 3.2: base + hops x h + max(0, min(alpha / sqrt(w) + beta, range)), windows in packets; ns."""
    def root(one):
        return (one * RTT / 8e9 / MTU) ** -0.5

    alpha = RANGE / (root(MIN_RATE) - root(MAX_RATE))
    return BASE + HOPS * PER_HOP + max(0.0, min(alpha * (root(rate) - root(MAX_RATE)), RANGE))


def curve(build):
    program = ctypes.CDLL(str((build / "dpa" / "swift.so").resolve()), mode=ctypes.RTLD_LOCAL | ctypes.DEFAULT_MODE)
    program.swift_target.argtypes = [ctypes.POINTER(ctypes.c_int64), ctypes.c_uint64, ctypes.c_uint32]
    program.swift_target.restype = ctypes.c_uint32
    parameters = (ctypes.c_int64 * 7)(BASE, HOPS, PER_HOP, RANGE, MIN_RATE, MAX_RATE, MTU)
    rates = (20, 32, 40, 48, 64, 80, 96, 100)
    ours = [program.swift_target(parameters, one * 1_000_000_000, RTT) for one in rates]
    table(("rate, Gbps", "target delay, ns: closed form", "ours"), [[one, f"{target(one * 1e9):.0f}", value] for one, value in zip(rates, ours)])
    print("paper: it falls as the rate rises, from all of the range to none; ours:",
          "so it is" if ours == sorted(ours, reverse=True) and ours[1] - ours[6] == RANGE else "NOT so")


def main():
    options = arguments(__doc__)
    curve(options.build)
    backgrounds = (20, 40, 60)
    points = [{"background": f"{one}Gbps"} for one in backgrounds]
    runs = run_all(options, "scr/swift.yaml", points)
    at_once = run_all(options, "scr/swift.yaml", [{**point, **AT_ONCE} for point in points])
    share = 1024 / 1098  # of the wire that is payload
    rows = [[one, f"{100 * share - one:.1f}", f"{gbps(run, 'swift'):.1f}", f"{gbps(run, 'background'):.1f}", f"{gbps(fast, 'swift'):.1f}"]
            for one, (run, *_), (fast, *_) in zip(backgrounds, runs, at_once)]
    table(("background, Gbps", "left of the line", "ours", "background got", "ours without A.11's latencies"), rows)
    for one, left, ours, _, fast in rows:
        explain(f"beside {one} Gbps, of what is left", float(left), float(ours),
                "a probe is answered and its rate in force some 20 us after the last, by A.11's latencies, and a cut may follow a cut after one round trip of about 4 us: "
                f"a queue that stands is cut for twice before the first cut shows. Without these latencies it has {fast} Gbps; the text says no more than "
                "that it comes to what is left", " Gbps")


if __name__ == "__main__":
    main()
