#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Figure 7 of "Network-Offloaded Bandwidth-Optimal Broadcast and Allgather": bitmap and receive buffer that so many bits of the immediate
can address, with chunks of 4 KiB, and what the text says of them (III-D); what IV-C says an Allgather sends and receives.

usage: allgather_figure_7.py BUILD_FOLDER [--block KIB]

Beside the arithmetic stands what `rocebox sim` does: an Allgather whose chunks just fit the bits that are left for them runs, one chunk
more is refused. tests/unit/allgather/model_test.cc has the same limits of the code.
"""
import json
import pathlib
import subprocess
import tempfile

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


def staging_slots(rocebox, slots):
    """How many slots there are where a ring has room for so many, of 4 KiB and a GRH."""
    config = ("devices:\n  a: {nic: {address: 10.0.0.1, header_only: true}}\n  b: {nic: {address: 10.0.0.2, header_only: true}}\n"
              "links:\n  x: {between: [a.wire, b.wire]}\nworkloads:\n"
              f"  w: {{type: multicast_broadcast, size: 4KiB, staging: {slots * (CHUNK + 40)}B, hosts: [a, b]}}\n")
    done = subprocess.run([rocebox, "sim", "--quiet", "--json", "/dev/stdout", "/dev/stdin"], input=config, capture_output=True, text=True, cwd=ROOT, check=True)
    return json.loads(done.stdout)["workloads"]["w"]["details"]["staging_slots"]


def of_an_allgather(rocebox, ranks, subgroups, kib):
    """MiB that a rank sends and receives, of the report's datagrams."""
    config = (f"topology:\n  leaf_spine: {{leaves: 4, spines: 4, hosts_per_leaf: {ranks // 4}}}\n"
              f"  multicast: [{{group: 239.1.0.0, count: {subgroups}}}]\n  hosts: {{nic: {{header_only: true}}}}\n  switches: {{switch: {{}}}}\n"
              f"workloads:\n  w: {{type: multicast_allgather, size: {kib}KiB, subgroups: {subgroups}}}\n")
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([rocebox, "sim", "--quiet", "--json", out.name, "/dev/stdin"], input=config, capture_output=True, text=True, cwd=ROOT, check=True)
        details = json.loads(pathlib.Path(out.name).read_text())["workloads"]["w"]["details"]
    return (details[name] * CHUNK / ranks / 2**20 for name in ("datagrams_sent", "chunks_received"))


def verdict(ours, stated):
    return "holds" if abs(ours / stated - 1) <= 0.1 else "does not hold"


def main():
    options = arguments(__doc__, block=(8192, "KiB of each rank's block, of IV-C"))
    rocebox = find_rocebox(options.build)
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
    sent, received = of_an_allgather(rocebox, 16, 4, options.block)
    largest = staging_slots(rocebox, 10000) * CHUNK / 2**20
    scale = options.block / 8192
    table(("statement", "paper", "ours", "verdict"),
          [("buffer of a bitmap as large as the DPA's cache of 1.5 MB", "about 50 GB", f"{buffer / 1e9:.0f} GB", verdict(buffer, 50e9)),
           ("buffer of a bitmap of 64 KiB", "up to 16 GB", f"{small / 2**30:g} GiB",
            verdict(small, 16e9) + f": 16 GiB need {2**34 // CHUNK // 8 // 1024} KiB"),
           ("16 communicators of 64 KiB and 16 KiB fit the cache", "yes", f"{sixteen / 1e6:.2f} MB", "holds" if sixteen < LLC else "does not hold"),
           ("staging of a receive queue of 8192 slots, GRHs aside", "32 MiB", f"{largest:g} MiB, with room for more", verdict(largest, 32)),
           ("16 ranks of 8 MiB in 4 subgroups: a rank receives, MiB", 120, f"{received:g}", verdict(received, 120 * scale)),
           ("to what it sends", "15", f"{received / sent:g}", verdict(received / sent, 15)),
           ("of each subgroup it sends and receives, MiB", "2, 30", f"{sent / 4:g}, {received / 4:g}", verdict(received / 4, 30 * scale))])


if __name__ == "__main__":
    main()
