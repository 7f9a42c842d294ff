#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SCR's Figure 15: bytes of a TX event, by size and number of messages that are posted at once (a), and by how long the law takes (b).

usage: scr_figure_15.py BUILD_FOLDER

The text (A.3), which has no numbers: larger messages and deeper queues let more be taken together, up to a ceiling; so does a slower law.
"""
from closed_loops import arguments, run_all, table
from scr_kit import kernel

CEILING = 64 << 10  # scr_control's default


def main():
    options = arguments(__doc__)
    depths = [{"qps": 1, "size": size, "depth": depth} for size, depth in (("1KiB", 1), ("4KiB", 1), ("4KiB", 4), ("64KiB", 4))]
    laws = [{"qps": 4, "law": law, "threads": 4} for law in ("1us", "4us", "16us", "64us")]
    rows = []
    for point, (run, *_) in zip(depths + laws, run_all(options, "scr/figure_10.yaml", depths + laws)):
        count = kernel(run, "h0")["counters"]
        rows.append([" ".join(f"{key}={value}" for key, value in point.items()), count["scr_tx_bytes_handled"] / count["scr_tx_events_handled"]])
    table(("run", "bytes an event"), [[name, f"{size:.0f}"] for name, size in rows])
    sizes = [size for _, size in rows]
    for what, these in (("larger messages and deeper queues take more together", sizes[:4]), ("so does a slower law", sizes[4:])):
        print(f"paper: {what}; ours:", "so it is" if all(after > 0.99 * before for before, after in zip(these, these[1:])) and these[0] < these[-1] / 2 else "NOT so")
    print("paper (15a): there is a ceiling; ours:", "so it is" if max(sizes[:4]) <= CEILING else "NOT so",
          f"({CEILING} bytes; what finds its queue full is taken in above it: no byte is lost)")


if __name__ == "__main__":
    main()
