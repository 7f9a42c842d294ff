#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""LoWAR's residual loss against the link's loss: measured by `rocebox replay`, beside the analytic expectation.

usage: lowar_residual_loss.py BUILD_FOLDER [FOLDER_FOR_RESULTS] [--packets N] [--seeds N]

Writes lowar_residual_loss.csv and, where matplotlib is installed (python3-matplotlib), lowar_residual_loss.png. An RC stream of
128-packet WRITEs crosses two gateways with a link between them that loses 1e-5 to 1e-1 of all packets, repair packets too, one by
one or in bursts of 2 to 12. With the defaults (100,000 packets, 6 seeds) it takes about five minutes on one idle core.
"""
import argparse
import csv
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from lowar_model import chain, residual_loss  # noqa: E402

CODINGS = ((8, 1), (32, 1), (32, 4), (64, 8), (128, 32))
LOSSES = (1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
BURSTS = (None, 2, 4, 8, 12)
MESSAGE_PACKETS, PAYLOAD_BYTES, GAP_NANOS = 128, 256, 1000  # whole blocks, whatever r
FIRST, MIDDLE, LAST = 0x06, 0x07, 0x08  # RC RDMA WRITE
# Student's t, two-sided, by degrees of freedom.
T_95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 9: 2.26, 11: 2.20, 15: 2.13}
COLUMNS = ("r", "c", "burst", "link_loss", "link_loss_measured", "packets", "expected", "measured", "half_width_95")
CONFIG = """seed: {seed}
devices:
  near: {{path: host <-> lowar <-> wan, kernels: {{lowar: {{r: {r}, c: {c}}}}}}}
  far: {{path: host <-> lowar <-> wan, kernels: {{lowar: {{r: {r}, c: {c}}}}}}}
links:
  haul: {{between: [near.wan, far.wan], forward: {{burst_loss: {{enter: {enter!r}, leave: {leave!r}}}}}}}
ports: {{near.host: {{pcap: {{in: {capture}}}}}}}
"""


def write_capture(path, packets, message_packets=MESSAGE_PACKETS, payload_bytes=PAYLOAD_BYTES):
    """One RC stream of WRITEs with random payload, a packet a microsecond, as a pcap with nanoseconds."""
    draw = random.Random(1)
    ethernet = bytes(12) + b"\x08\x00"
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for number in range(packets):
            place = number % message_packets
            opcode = FIRST if place == 0 else LAST if place == message_packets - 1 else MIDDLE
            payload = draw.randbytes(payload_bytes)
            bth = struct.pack(">BBHII", opcode, 0, 0xffff, 0x11, number & 0xffffff)
            reth = struct.pack(">QII", 0, 1, message_packets * payload_bytes) if place == 0 else b""
            transport_bytes = len(bth) + len(reth) + payload_bytes + 4
            addresses = bytes((10, 0, 0, 1, 10, 0, 0, 2))
            ports = struct.pack(">HHH", 0xc000, 4791, 8 + transport_bytes)
            middle = struct.pack(">HHH", 28 + transport_bytes, number & 0xffff, 0x4000)
            covered = b"\xff" * 8 + b"\x45\xff" + middle + b"\xff\x11\xff\xff" + addresses + ports + b"\xff\xff" \
                + bth[:4] + b"\xff" + bth[5:] + reth + payload  # annex A17.3.3
            ip = b"\x45\x00" + middle + b"\x40\x11"
            checksum = sum(struct.unpack(">10H", ip + b"\0\0" + addresses))
            checksum = (checksum & 0xffff) + (checksum >> 16)
            checksum = ~((checksum & 0xffff) + (checksum >> 16)) & 0xffff
            frame = b"".join((ethernet, ip, struct.pack(">H", checksum), addresses, ports, b"\0\0", bth, reth, payload,
                              struct.pack("<I", zlib.crc32(covered))))
            at = number * GAP_NANOS
            out.write(struct.pack("<IIII", at // 10**9, at % 10**9, len(frame), len(frame)) + frame)


def one_run(rocebox, folder, capture, r, c, enter, leave, seed):
    """(share of data packets that never left the far gateway, share of all packets that the link lost)."""
    config, report = folder / "run.yaml", folder / "run.json"
    config.write_text(CONFIG.format(seed=seed, r=r, c=c, enter=enter, leave=leave, capture=json.dumps(str(capture))))
    done = subprocess.run([rocebox, "replay", config, "--json", report], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    report = json.loads(report.read_text())
    near, far = (report["devices"][device]["ports"]["host"] for device in ("near", "far"))
    haul = report["links"]["haul"]["counters"]
    return 1 - far["tx_packets"] / near["rx_packets"], haul.get("forward_drop_burst_loss", 0) / haul["forward_packets"]


def seeds_of(r, c, loss, burst, count):
    """Seeds that no other point has: where points share the link's losses, all err alike."""
    first = zlib.crc32(repr((r, c, loss, burst)).encode()) >> 8 << 8
    return range(first, first + count)


def measure(rocebox, folder, capture, r, c, loss, burst, seeds):
    """A row of the table: mean over seeds, and half of its 95% confidence interval."""
    enter, leave = chain(loss, burst)
    runs = [one_run(rocebox, folder, capture, r, c, enter, leave, seed) for seed in seeds_of(r, c, loss, burst, seeds)]
    mean = sum(residual for residual, _ in runs) / seeds
    deviation = math.sqrt(sum((residual - mean) ** 2 for residual, _ in runs) / (seeds - 1))
    return {"r": r, "c": c, "burst": burst or 1, "link_loss": loss, "link_loss_measured": sum(lost for _, lost in runs) / seeds,
            "expected": residual_loss(r, c, enter, leave), "measured": mean,
            "half_width_95": T_95.get(seeds - 1, 2.0) * deviation / math.sqrt(seeds)}


def bound(row):
    """Where nothing stayed lost: what stays lost on average is below that with 95% confidence.

    What happens independently is a burst of the link, not a loss. Of the B = packets * loss / burst bursts none left a packet
    behind, so (rule of three) fewer than 3 / B of all do. Such a burst is longer than c, by `burst` packets in the mean, for
    geometric lengths forget; and leaves at most two for each of these. 3 / B of the bursts then are 6 * burst / packets of
    the packets, however many bursts there were. Of fewer than six losses that says nothing: all may stay."""
    return min(6 * row["burst"] / row["packets"], row["link_loss"])


def plot(rows, path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    columns = 3
    figure, grid = pyplot.subplots(-(-len(BURSTS) // columns), columns, figsize=(13, 8), sharex=True, sharey=True)
    panels = list(grid.flat)
    for panel in panels[len(BURSTS):]:
        panel.set_visible(False)
    steps = [10 ** (-5 + 4 * n / 60) for n in range(61)]
    for burst, panel in zip(BURSTS, panels):
        panel.plot(steps, steps, color="grey", linestyle=":", label="link")
        for number, (r, c) in enumerate(CODINGS):
            color = f"C{number}"
            panel.plot(steps, [residual_loss(r, c, *chain(loss, burst)) for loss in steps], color=color, label=f"LoWAR({r}, {c})")
            all_mine = [row for row in rows if (row["r"], row["c"], row["burst"]) == (r, c, burst or 1)]
            mine = [row for row in all_mine if row["measured"] > 0]
            none = [row for row in all_mine if row["measured"] == 0]
            panel.plot([row["link_loss"] for row in none], [bound(row) for row in none], color=color, linestyle="",
                       marker="v", markersize=5, fillstyle="none")
            # A bar that would reach 0 has no place on a logarithmic axis.
            below = [min(row["half_width_95"], row["measured"] * 0.99) for row in mine]
            panel.errorbar([row["link_loss"] for row in mine], [row["measured"] for row in mine],
                           yerr=[below, [row["half_width_95"] for row in mine]], color=color, fmt="o", markersize=4, capsize=2)
        panel.set(xscale="log", yscale="log", ylim=(1e-9, 0.3), xlabel="loss on the link",
                  title="independent losses" if burst is None else f"bursts of {burst} (mean)")
        panel.grid(alpha=0.3)
    for row in grid:
        row[0].set_ylabel("data packets lost for good")
    panels[0].legend(fontsize=8)
    figure.suptitle("LoWAR: lines are expected, points measured (rocebox replay), bars 95% confidence; triangles: nothing lost, so "
                    "below that with 95% confidence")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def write_results(rows, columns, plot_rows, path):
    """The table, and the figure where matplotlib is installed: path.csv, path.png."""
    with open(path.with_suffix(".csv"), "w", newline="") as out:
        writer = csv.DictWriter(out, columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()})
    try:
        plot_rows(rows, path.with_suffix(".png"))
    except ImportError:
        print("no figure: install python3-matplotlib", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("results", type=pathlib.Path, nargs="?", default=pathlib.Path())
    parser.add_argument("--packets", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=6)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        write_capture(folder / "stream.pcap", arguments.packets)
        for burst in BURSTS:
            for r, c in CODINGS:
                for loss in LOSSES:
                    row = measure(arguments.build / "rocebox", folder, folder / "stream.pcap", r, c, loss, burst,
                                  arguments.seeds)
                    rows.append({"packets": arguments.packets * arguments.seeds, **row})
                    print("LoWAR(%d, %d) burst %d loss %g: expected %.3g measured %.3g +- %.2g" % (
                        r, c, row["burst"], loss, row["expected"], row["measured"], row["half_width_95"]), flush=True)
    write_results(rows, COLUMNS, plot, arguments.results / "lowar_residual_loss")


if __name__ == "__main__":
    main()
