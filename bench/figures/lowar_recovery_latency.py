#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How late LoWAR hands over what it rebuilds, against r: figures 13b and 13c of the paper, by `rocebox replay`.

usage: lowar_recovery_latency.py BUILD_FOLDER [FOLDER_FOR_RESULTS]

Writes lowar_recovery_latency.csv and, where matplotlib is installed (python3-matplotlib), lowar_recovery_latency.png. One RC stream of
WRITEs of 1 MiB, a packet of 1024 B a microsecond, crosses two gateways and a link of 100 Gbps that loses chosen packets, each at
another place of its block: one in every other block; one in each of two blocks in a row, of four; with (128, 16) also 16 in a
row. A packet's latency is the time at which it left the far gateway, less that of the same packet where nothing is lost. What
the gateways add where nothing is lost is the most by which a packet leaves later than over the link alone. It is all waiting: replay
knows no computing time (lowar_bench measures that), so the results do not depend on the machine.
"""
import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from lowar_residual_loss import write_capture, write_results  # noqa: E402

BLOCKS = (8, 16, 32, 64, 128, 256)
MESSAGE_PACKETS, PAYLOAD_BYTES = 1024, 1024
PLACES = 64  # of a block that are tried, at most
GAP_MICROSECONDS = 1.0
REPAIR_MICROSECONDS = (14 + 20 + 8 + 24 + 12 + 12 + PAYLOAD_BYTES + 4 + 4 + 24) * 8 / 100e3  # on the link
PSN_OFFSET = 14 + 20 + 8 + 9  # Ethernet, IPv4, UDP, BTH
COLUMNS = ("r", "c", "losses", "lost_packets", "mean_us", "max_us", "expected_mean_us", "clean_added_max_us")
GATEWAY = "host <-> lowar <-> wan, kernels: {{lowar: {{r: {r}, c: {c}}}}}"
CONFIG = """devices:
  near: {{path: {path}}}
  far: {{path: {path}}}
links:
  haul: {{between: [near.wan, far.wan], rate: 100Gbps, delay: 1ms, forward: {{events: {events}}}}}
ports:
  near.host: {{pcap: {{in: {capture}}}}}
  far.host: {{pcap: {{out: {out}}}}}
"""


def leaving_times(path):
    """By PSN: when a data packet left the far gateway, in nanoseconds."""
    times = {}
    data = path.read_bytes()
    at = 24
    while at < len(data):
        seconds, nanos, held, _ = struct.unpack_from("<IIII", data, at)
        psn = int.from_bytes(data[at + 16 + PSN_OFFSET:at + 16 + PSN_OFFSET + 3], "big")
        times[psn] = seconds * 10**9 + nanos
        at += 16 + held
    return times


def one_run(rocebox, folder, capture, path, lost):
    """leaving_times() by gateways of that path, with these PSNs lost on the link."""
    out = folder / "out.pcap"
    events = ", ".join(f"{{qpn: 0x11, psn: {psn}, do: drop}}" for psn in lost)
    (folder / "run.yaml").write_text(CONFIG.format(path=path, events=f"[{events}]", capture=json.dumps(str(capture)),
                                                   out=json.dumps(str(out))))
    done = subprocess.run([rocebox, "replay", folder / "run.yaml"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return leaving_times(out)


def losses(r, kind):
    """PSNs to lose, of a stream that is long enough for all; the number of that stream's blocks."""
    places = sorted({place * r // PLACES for place in range(PLACES)}) if r > PLACES else list(range(r))
    if kind == "one":
        return [2 * number * r + place for number, place in enumerate(places)], 2 * len(places) + 2
    if kind == "two blocks":
        return [(4 * number + block) * r + place for number, place in enumerate(places) for block in (0, 1)], 4 * len(places) + 2
    burst = 16
    places = [place for place in places if place + burst <= r]
    return [2 * number * r + place + n for number, place in enumerate(places) for n in range(burst)], 2 * len(places) + 2


def expected_mean(r, c, lost):
    """By the format alone: a lost packet waits for the last of its block, and then for its own unit's repair packet."""
    waits = [(r - 1 - psn % r) * GAP_MICROSECONDS + (1 + psn % r % c) * REPAIR_MICROSECONDS for psn in lost]
    return sum(waits) / len(waits)


def measure(rocebox, folder, r, c, kind):
    lost, blocks = losses(r, kind)
    capture = folder / "stream.pcap"
    packets = -(-blocks * r // MESSAGE_PACKETS) * MESSAGE_PACKETS
    write_capture(capture, packets, MESSAGE_PACKETS, PAYLOAD_BYTES)
    gateway = GATEWAY.format(r=r, c=c)
    bare, clean, lossy = (one_run(rocebox, folder, capture, path, events)
                          for path, events in (("host <-> wan", ()), (gateway, ()), (gateway, lost)))
    if any(sorted(times) != list(range(packets)) for times in (bare, clean, lossy)):
        raise RuntimeError(f"LoWAR({r}, {c}), {kind}: not every packet came out")
    late = [(lossy[psn] - clean[psn]) / 1000 for psn in lost]
    return {"r": r, "c": c, "losses": kind, "lost_packets": len(lost), "mean_us": sum(late) / len(late), "max_us": max(late),
            "expected_mean_us": expected_mean(r, c, lost), "clean_added_max_us": max(clean[psn] - bare[psn] for psn in bare) / 1000}


def plot(rows, path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, panel = pyplot.subplots(figsize=(7, 5))
    for kind, marker in (("one", "o"), ("two blocks", "s")):
        mine = [row for row in rows if row["losses"] == kind and row["c"] == 1]
        together = 2 if kind == "two blocks" else 1
        panel.plot([row["r"] for row in mine], [together * row["mean_us"] for row in mine], marker=marker,
                   label="one loss" if together == 1 else "two losses in two blocks, together")
    panel.plot(BLOCKS, [(r - 1) / 2 for r in BLOCKS], color="grey", linestyle=":", label="half a block")
    for row in rows:
        if row["c"] == 16:
            panel.plot([row["r"]], [row["mean_us"]], linestyle="", marker="^" if row["losses"] == "one" else "v",
                       label=f"LoWAR(128, 16), {row['losses']}")
    panel.set(xscale="log", yscale="log", xlabel="r, packets of a block", ylabel="recovery latency, us (a packet is 1 us)",
              title="LoWAR: time from when a lost packet was due until it is handed over")
    panel.set_xscale("log", base=2)
    panel.grid(alpha=0.3)
    panel.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("results", type=pathlib.Path, nargs="?", default=pathlib.Path())
    arguments = parser.parse_args()
    cases = [(r, 1, kind) for r in BLOCKS for kind in ("one", "two blocks")] + [(128, 16, "one"), (128, 16, "16 in a row")]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            rows.append(measure(arguments.build / "rocebox", pathlib.Path(folder), *case))
            print("LoWAR(%(r)d, %(c)d), %(losses)s: mean %(mean_us).1f us, max %(max_us).1f, expected %(expected_mean_us).1f; "
                  "on a clean link %(clean_added_max_us).3f at most"
                  % rows[-1], flush=True)
    write_results(rows, COLUMNS, plot, arguments.results / "lowar_recovery_latency")


if __name__ == "__main__":
    main()
