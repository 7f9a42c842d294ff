#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SDR's figure 14: throughput of the receive side at 400 Gbit/s with chunks of 64 KiB (16 packets), by DPA threads and by message size.

usage: sdr_figure_14.py BUILD_FOLDER [--jobs N]

Runs configs/sim/dpa_receive.yaml with the program `chunks`. Fitted are Allgather's Table I (a CQE) and SDR's 15 million packets a second
of 16 threads with chunks of one packet (the write to the host's bitmap), and nothing else; "paper" is what the text of 5.4.1 states.

The left half, throughput by message size, is predicted by these costs alone: a message shorter than a chunk has a chunk of its own size.
What a new receive costs (slot, memory key, bitmap) no text states, so the prediction has none of it, and what the text says of messages
below 512 KiB cannot come out. The last table tells how long a receive would have to take for the text to be right.
"""
from dpa_receive import CHUNK, SDR, arguments, error, measure, statements, table

THREADS = (1, 2, 4, 8, 16)
SIZES = tuple(1 << n for n in range(12, 25))
CHUNK_PACKETS = 16
FULL_SIZE = 512 << 10
LINE = 400e9
FULL = 0.95


def packets_of_chunk(size):
    return min(size // CHUNK, CHUNK_PACKETS)


def run(options):
    """Points by threads, with whole chunks, and by the packets of a chunk, with all threads."""
    short = sorted({packets_of_chunk(size) for size in SIZES} - {CHUNK_PACKETS})
    settings = [(n, CHUNK_PACKETS) for n in THREADS] + [(THREADS[-1], packets) for packets in short]
    points = measure(options, [{**SDR, "rate": "400Gbps", "chunk": packets, "threads": n, "time": "300us"} for n, packets in settings])
    by_threads = dict(zip(THREADS, points))
    return by_threads, {CHUNK_PACKETS: by_threads[THREADS[-1]], **dict(zip(short, points[len(THREADS):]))}


def main():
    by_threads, by_chunk = run(arguments(__doc__))
    table(("threads", "Gbit/s", "what comes"),
          [[n, f"{point.gbps():.1f}", f"{point.arriving * CHUNK * 8 / 1e9:.1f}"] for n, point in by_threads.items()])
    print("\nleft half: 16 threads, by the size of a message")
    table(("message, KiB", "Gbit/s", "of what comes"),
          [[size >> 10, f"{point.gbps():.1f}", f"{point.rate / point.arriving:.3f}"]
           for size, point in ((size, by_chunk[packets_of_chunk(size)]) for size in SIZES)])
    full, below = by_chunk[packets_of_chunk(FULL_SIZE)], by_chunk[packets_of_chunk(FULL_SIZE // 2)]
    sustained = full.rate >= FULL * full.arriving
    behind = below.rate < FULL * below.arriving
    # Gbit/s of the line, of which payload is 97%: so much of what comes the threads are done with.
    kept_up, below_line = (LINE * point.rate / point.arriving / 1e9 for point in (full, below))
    statements([["16 threads, 1/16 of the DPA, sustain the line from 512 KiB on, Gbit/s", f"{LINE / 1e9:.0f}", f"{kept_up:.0f}",
                 error(kept_up, LINE / 1e9) + (", holds" if sustained else ", does not hold")],
                ["below 512 KiB behind RC Writes, for what a receive costs", "yes", f"{below_line:.0f} Gbit/s at 256 KiB",
                 "holds" if behind else "does not hold: the model has no such cost"]])
    print(f"\nFor the text to be right a receive takes between {FULL_SIZE // 2 * 8 / LINE * 1e6:.1f} and {FULL_SIZE * 8 / LINE * 1e6:.1f} us"
          " where the server posts one after the other.")


if __name__ == "__main__":
    main()
