#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SCR's Figures 10a, b, d, e and 15: bytes of a TX event and events a second, by flows, threads, and how long the law takes; and the
memory in which new flows are told from known ones (10e: the library's Bloom filter, compiled by `cc`).

usage: scr_figure_10.py BUILD_FOLDER

The text: SCR keeps up with the line (10a); up to 64 flows each has a thread and granularity is finest, beyond it does not change up to
1024 (10b); software coalescing handles 51.3% more events with four threads (10d: events taken from the hardware, put aside or handled);
a slower law takes more bytes into one event (15b), as do larger messages and deeper queues (15a); 8192 flows of 24-bit numbers need 2 MB as
a bitmap and 8 KB in a Bloom filter with three hashes, which is wrong of 3 in 100 (10e).
"""
import pathlib
import subprocess
import tempfile

from closed_loops import arguments, run_all, table
from scr_kit import gbps, kernel

LINE = 100e9
FILTER = r"""
#include <rocebox/bloom_filter.h>
#include <stdio.h>
BLOOM_FILTER(filter, 16, 3);
static struct filter seen;
static unsigned char known[1 << 24];
static uint32_t next(void) { static uint64_t x = 88172645463325252u; x ^= x << 13; x ^= x >> 7; x ^= x << 17; return x >> 40; }
int main(void) {
  unsigned wrong = 0, asked = 0;
  for (unsigned flows = 0; flows < 8192;) {
    const uint32_t flow = next();
    if (known[flow]) continue;
    known[flow] = 1, flows++;
    filter_add(&seen, flow);
  }
  while (asked < 1000000) {
    const uint32_t flow = next();
    if (known[flow]) continue;
    asked++, wrong += filter_has(&seen, flow) != 0;
  }
  printf("%zu %.4f\n", sizeof seen, wrong / 1e6);
  return 0;
}
"""


def space():
    include = pathlib.Path(__file__).resolve().parents[2] / "nic_model/dpa/include"
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "filter"
        subprocess.run(["cc", "-O2", f"-I{include}", "-x", "c", "-", "-o", program], input=FILTER, text=True, check=True)
        size, wrong = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    print(f"8192 flows of 2^24: bitmap: {2**24 // 8} bytes; Bloom filter: paper 8192 bytes, wrong 0.03, ours {size} bytes, wrong {wrong}")


def main():
    options = arguments(__doc__)
    flows = [{"qps": qps} for qps in (1, 4, 16, 64, 128, 256, 512)]
    laws = [{"qps": 4, "law": law, "threads": 4} for law in ("1us", "4us", "16us")]
    software = [{"qps": 64, "threads": 4, "strategy": strategy} for strategy in ("accumulate", "rate_stable")]
    depths = [{"qps": 1, "size": size, "depth": depth} for size, depth in (("1KiB", 1), ("4KiB", 4), ("64KiB", 4))]
    points = flows + laws + software + depths
    rows, taken = [], []
    for point, (run, *_) in zip(points, run_all(options, "scr/figure_10.yaml", points)):
        count = kernel(run, "h0")["counters"]
        events = count["scr_tx_events_handled"]
        # The line is busy until the last message that was posted has left.
        seconds = max(500e-6, (count["tx_roce_bytes"] + 24 * count["tx_roce_packets"]) * 8 / LINE)
        aside = count.get("scr_events_put_aside", 0)
        taken.append((events + aside) / seconds / 1e6)
        rows.append([" ".join(f"{key}={value}" for key, value in point.items()), f"{gbps(run, 'flows'):.1f}",
                     f"{count['scr_tx_bytes_handled'] * 8 / seconds / 1e9:.1f}", f"{taken[-1]:.2f}",
                     f"{count['scr_tx_bytes_handled'] / max(events, 1):.0f}"])
    table(("run", "goodput, Gbps", "processed, Gbps", "M events/s taken", "bytes an event"), rows)
    print(f"software coalescing with four threads: paper +51.3%, ours {100 * (taken[11] / taken[10] - 1):+.1f}%")
    space()
    print(f"64 to 512 flows: paper: the same; ours {float(rows[6][4]) / float(rows[3][4]):.2f} times the bytes an event")


if __name__ == "__main__":
    main()
