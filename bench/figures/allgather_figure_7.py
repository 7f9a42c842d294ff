#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Figure 7 of "Network-Offloaded Bandwidth-Optimal Broadcast and Allgather": bitmap and receive buffer that so many bits of the immediate
can address, with chunks of 4 KiB, and what the text says of them (III-D).

usage: allgather_figure_7.py BUILD_FOLDER

Beside the arithmetic stands what `rocebox sim` does: an Allgather whose chunks just fit the bits that are left for them runs, one chunk
more is refused. tests/unit/allgather/model_test.cc has the same limits of the code.
"""
import subprocess

from closed_loops import ROOT, arguments, find_rocebox, table

CHUNK, LLC = 4096, 1.5e6
SMALL = 256  # bytes of a chunk with which it is tried


def outcome(rocebox, bits, chunks):
    """What becomes of a Broadcast of so many chunks where `bits` are left for their number: runs, refused, or else."""
    words = {"size": f"{chunks * SMALL}B", "mtu": SMALL, "bits": 32 - bits - 3}
    config = ("devices:\n  s: {switch: {ports: [p0, p1]}}\n  a: {nic: {address: 10.0.0.1, header_only: true}}\n"
              "  b: {nic: {address: 10.0.0.2, header_only: true}}\n"
              "links:\n  x: {between: [a.wire, s.p0]}\n  y: {between: [b.wire, s.p1]}\nworkloads:\n"
              "  w: {type: multicast_broadcast, size: %(size)s, mtu: %(mtu)d, generation_bits: %(bits)d, hosts: [a, b]}\n" % words)
    done = subprocess.run([rocebox, "sim", "--quiet", "/dev/stdin"], input=config, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode == 2 and "more chunks than the immediate has bits for" in done.stderr:
        return "refused"
    return "runs" if done.returncode == 0 else f"status {done.returncode}"


def verdict(ours, stated):
    return "holds" if abs(ours / stated - 1) <= 0.1 else "does not hold"


def main():
    rocebox = find_rocebox(arguments(__doc__).build)
    rows = []
    for bits in (8, 12, 16, 19, 20, 24, 28, 32):
        tried = "-"
        if bits <= 12:
            tried = f"{outcome(rocebox, bits, 1 << bits)}, one chunk more: {outcome(rocebox, bits, (1 << bits) + 1)}"
        rows.append((bits, f"{2**bits / 8 / 1024:g} KiB", f"{2**bits * CHUNK / 2**30:g} GiB", tried))
    table(("bits", "bitmap", "receive buffer", "rocebox"), rows)
    print("\nwhat the text states")
    buffer = LLC * 8 * CHUNK
    sixteen = 16 * (64 + 16) * 1024
    small = 64 * 1024 * 8 * CHUNK
    table(("statement", "paper", "ours", "verdict"),
          [("buffer of a bitmap as large as the DPA's cache of 1.5 MB", "about 50 GB", f"{buffer / 1e9:.0f} GB", verdict(buffer, 50e9)),
           ("buffer of a bitmap of 64 KiB", "up to 16 GB", f"{small / 2**30:g} GiB",
            verdict(small, 16e9) + f": 16 GiB need {2**34 // CHUNK // 8 // 1024} KiB"),
           ("16 communicators of 64 KiB and 16 KiB fit the cache", "yes", f"{sixteen / 1e6:.2f} MB", "holds" if sixteen < LLC else "does not hold")])


if __name__ == "__main__":
    main()
