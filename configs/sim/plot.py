#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws a report of `rocebox sim` or `rocebox model`: plot.py REPORT.json FOLDER. What their `--plot FOLDER` calls.

Of a run with more transfers than its report has they are read from the transfers.csv beside it."""
import csv
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "rocebox"  # equal runs give equal files
import matplotlib.pyplot as plt

LINKS_SHOWN = 32
CURVES_SHOWN = 8
TIMES_DRAWN = 20_000
# Signals of NICs, switches and links, by the ends of their names, as far as a run has them.
SIGNALS = ("naks_sent", "packet_seq_err", "np_cnp_sent", "retransmitted_packets", "local_ack_timeout_err", "ecn_marked_packets",
           "rx_pause_frames", "rx_pause_duration_ns", "rx_global_pause_duration", *(f"rx_prio{i}_pause_duration" for i in range(8)),
           "drop_loss", "drop_down", "drop_buffer_full")


def save(figure, folder, name):
    figure.tight_layout()
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    figure.savefig(folder / f"{name}.png", dpi=150)
    plt.close(figure)


def completion_times(report, table):
    """Those of all transfers by workload, sorted: of the table where the report does not have them all."""
    times = {name: [flow["completion_ns"] for flow in workload["flows"] if flow["done"]]
             for name, workload in report["workloads"].items()}
    if any(workload.get("transfers_omitted") for workload in report["workloads"].values()) and table.exists():
        times = {name: [] for name in times}
        with table.open(newline="") as file:
            for row in csv.DictReader(file):
                if row["done"] == "true":
                    times[row["workload"]].append(int(row["completion_ns"]))
    return {name: sorted(values) for name, values in times.items()}


def completion(report, folder, table):
    figure, axes = plt.subplots(figsize=(6, 4))
    for name, times in completion_times(report, table).items():
        if not times:
            continue
        count = min(len(times), TIMES_DRAWN)
        ranks = [len(times) * (i + 1) // count for i in range(count)]  # even ones, the last included
        axes.step([times[rank - 1] / 1000 for rank in ranks], [rank / len(times) for rank in ranks], where="post", label=name)
    axes.set(xlabel="completion time of a transfer (µs)", ylabel="share of transfers", ylim=(0, 1), xscale="log")
    if axes.lines:
        axes.legend()
    save(figure, folder, "completion")


def goodput(report, folder):
    figure, axes = plt.subplots(figsize=(6, 4))
    rows = report["goodput"]
    for name in report["workloads"]:
        axes.step([row["at_ns"] / 1000 for row in rows], [row[f"{name}_bits_per_second"] / 1e9 for row in rows], where="post",
                  label=name)
    axes.set(xlabel="time (µs)", ylabel="goodput (Gbit/s)", ylim=(0, None))
    if rows:
        axes.legend()
    save(figure, folder, "goodput")


def utilisation(report, folder):
    rated = [row for row in report["utilisation"] if "share" in row]  # of others no rate is known
    rows = sorted(rated, key=lambda row: -row["share"])[:LINKS_SHOWN]
    figure, axes = plt.subplots(figsize=(6, 1 + 0.2 * len(rows)))
    axes.barh([f"{row['link']} from {row['from']}" for row in rows], [100 * row["share"] for row in rows])
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=6)
    axes.set(xlabel="share of the link's rate (%)", xlim=(0, 100))
    save(figure, folder, "utilisation")


def curves(report, folder, name, columns, ylabel):
    """One curve a column over the samples of the series."""
    if not columns:
        return
    series = report["series"]
    edges = [at / 1000 for at in series["at_ns"]] + [series["end_ns"] / 1000]
    figure, axes = plt.subplots(figsize=(6, 4))
    for label, values in columns:
        axes.step(edges, [values[0], *values], where="pre", label=label)
    axes.set(xlabel="time (µs)", ylabel=ylabel, ylim=(0, None))
    axes.legend(fontsize=6)
    save(figure, folder, name)


def over_time(report, folder):
    series = report.get("series")
    if not series:
        return
    signals = [(name, values) for name, values in series["counts"].items()
               if name.split(".")[-1].removeprefix("forward_").removeprefix("reverse_") in SIGNALS]
    curves(report, folder, "signals", signals[:2 * CURVES_SHOWN], "counted in a sample")
    queues = [(name, [value / 1000 for value in values]) for name, values in series["levels"].items() if ".queue_bytes." in name]
    curves(report, folder, "queues", queues[:CURVES_SHOWN], "in a port's queues (kB)")
    levels = [(name, values) for name, values in series["levels"].items() if ".queue_bytes." not in name]
    curves(report, folder, "levels", levels[:CURVES_SHOWN], "level at the end of a sample")
    loads = [(name, [100 * share for share in shares]) for name, shares in series["utilisation"].items()]
    curves(report, folder, "load", loads[:CURVES_SHOWN], "share of the link's rate (%)")


def model_figure(figure_, folder, name):
    """Curves of theory over one axis."""
    figure, axes = plt.subplots(figsize=(6, 4))
    rows = figure_["points"]
    for curve in [key for key in rows[0] if key != figure_["x"]] if rows else []:
        axes.plot([row[figure_["x"]] for row in rows], [row[curve] for row in rows], marker=".", label=curve)
    axes.set(xlabel=figure_["x"], ylabel=figure_["y"], title=figure_["title"])
    axes.title.set_fontsize(7)
    if figure_["log_x"]:
        axes.set_xscale("log")
    if figure_["log_y"]:
        axes.set_yscale("log")
    if axes.lines:
        axes.legend(fontsize=6)
    save(figure, folder, name)


def main():
    report = json.loads(pathlib.Path(sys.argv[1]).read_text())
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    if report["command"] == "model":
        for name, figure in report["figures"].items():
            model_figure(figure, folder, name)
        return
    completion(report, folder, pathlib.Path(sys.argv[1]).with_name("transfers.csv"))
    for draw in (goodput, utilisation, over_time):
        draw(report, folder)


if __name__ == "__main__":
    main()
