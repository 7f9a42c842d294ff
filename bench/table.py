# SPDX-License-Identifier: BSD-3-Clause
"""The table of claims, from the results of the benchmarks. usage: table.py RESULTS_FOLDER
Reads parse*.json, icrc*.json, hash*.json, pipeline*.json, kernel*.json, stage*.json, lowar*.json, new_flows.json, event_queue.json, nic.json, sdr_messages.json, sdr_codec.json, dpa.json, allgather.json, multicast.json, scr.json (Google Benchmark), instructions_of_calls.json (instructions.py) and replay.json. Exit
status 1 when a claim fails."""
import glob
import json
import os
import statistics
import sys

NS_PARSE, RATIO_ICRC, NS_EDIT, RATIO_REPLAY, GROWTH_REPLAY = 20.0, 1.25, 15.0, 0.5, 1.10
US_NEW_FLOW, US_NEW_FLOW_P99 = 5.0, 20.0
EVENT_QUEUE, RATIO_EVENT_QUEUE = "indexed heap, 4", 5.0  # of timers: others are 50 times slower at worst, or grow
DEVICE_QUEUE = "wheel before a heap"  # of a fabric's devices
FLOW_KEYS, RATIO_HASH = (20, 32, 36, 40), 1.0  # bytes of the keys that there are
RATIO_LOWAR, SLOWER_LOWAR = 0.7, 1.25  # with 64 streams; from 1 stream to 512
# Millions of messages a second of 64 B, and of headers alone; from 1 queue pair to 8192.
M_NIC_SMALL, M_NIC_HEADERS, SLOWER_NIC = 4.0, 5.0, 2.0
# Of two copies by memcpy: what must not be lost again, and the goal. With ICRCs they are near each other, and memcpy varies from run to run by 5%;
# without them the goal is missed: nic_model/README.md says why.
OF_MEMCPY_NIC = (("WRITE 4096 B", 0.36, 0.4), ("WRITE 4096 B, ICRC left to the port", 0.48, 0.7),
                 ("WRITE 4096 B, buffers of 64 MiB", 0.4, 0.4), ("WRITE 4096 B, ICRC left to the port, buffers of 64 MiB", 0.7, 0.7))
# SDR: completions to bitmaps in millions a second, and the paper's, of 16 DPA threads; placing packets beside memcpy; the
# Reed-Solomon code beside ISA-L, which it falls back to.
M_SDR, M_SDR_PAPER, RATIO_SDR_PLACED, RATIO_SDR_CODE = 25.0, 15.0, 0.6, 0.95
# The multicast Allgather's receive handlers: chunks of 64 B a second, and chunks of 4 KiB copied beside memcpy.
# The kernel allgather: headers a second, and what one costs from 1 to 1024 sources.
M_ALLGATHER, RATIO_ALLGATHER_COPIED, M_ALLGATHER_PACKETS, SLOWER_ALLGATHER = {"ud": 20.0, "uc": 30.0}, 0.6, 8.0, 2.0
# SCR: events a second with 64 flows, and what one costs with 1024 beside that; of the interface in one call; packets that the kernel looks at.
M_SCR_EVENTS, SLOWER_SCR, NS_SCR_CALL, M_SCR_PACKETS = 15.0, 2.0, 40.0, 4.0
GRAIN_SCR = 1.05  # granularity invariance: the bytes that an event stands for, whatever the number of flows
# What a kernel edits in a packet for its protocol's sake; addresses and ECN are reported beside.
CLAIMED_EDITS = ("PSN", "destination QP", "UDP source port", "IPv6 address")
# As stage_bench names them, in the order of a packet's way.
STAGES = ("parse, enter the switch", "forward ingress", "themis ingress", "traffic manager", "forward egress", "themis egress",
          "leave", "all")


def repetitions(folder, stem):
    """The rows of all repetitions in all rounds."""
    for path in sorted(glob.glob(os.path.join(folder, stem + "*.json"))):
        with open(path) as file:
            rows = json.load(file)["benchmarks"]
        for row in rows:
            if row.get("error_occurred"):
                sys.exit(f"table: {row['name']}: {row['error_message']}")
            if row["run_type"] == "iteration":
                yield row


def best_of(folder, stem):
    """Benchmark name -> the repetition that was disturbed least."""
    best = {}
    for row in repetitions(folder, stem):
        if row["name"] not in best or row["ns"] < best[row["name"]]["ns"]:
            best[row["name"]] = row
    return best


def best_parts_of(folder, stem):
    """Label -> what a row times ("encode/64" and the like, ns for each packet), each as it was disturbed least."""
    best = {}
    for row in repetitions(folder, stem):
        parts = best.setdefault(row["label"], {"hz": row["hz"]})
        for name, value in row.items():
            if "/" in name and isinstance(value, float):
                parts[name] = min(value, parts.get(name, value))
    return best


class Table:
    def __init__(self):
        self.failed = self.missed = 0
        print(f"{'what':58s} {'bound':>10s} {'measured':>12s}")

    def row(self, what, measured, bound=None, holds=None):
        verdict = "" if holds is None else "pass" if holds else "FAIL"
        self.failed += holds is False
        print(f"{what:58s} {bound or '':>10s} {measured:>12s}  {verdict}".rstrip())

    def at_most(self, what, value, bound, unit):
        self.row(what, f"{value:.2f} {unit}", f"<= {bound:g} {unit}", value <= bound)

    def at_least(self, what, value, bound, unit):
        self.row(what, f"{value:.2f} {unit}", f">= {bound:g} {unit}", value >= bound)

    def toward(self, what, value, bound, goal, unit):
        """A goal that is not reached, or not each time, and the bound below which a claim fails."""
        self.at_least(what, value, bound, unit)
        self.missed += value < goal
        self.row("  the goal of this", f"{'missed' if value < goal else 'reached'}", f">= {goal:g} {unit}")


def parse_rows(table, best):
    for row in sorted(best.values(), key=lambda r: r["name"]):
        what = f"parse and classify a packet: {row['label']}"
        if row["label"].endswith("one burst"):
            table.at_most(what, row["ns"], NS_PARSE, "ns")
        else:
            table.row(what, f"{row['ns']:.2f} ns")


def icrc_rows(table, best):
    for name, row in best.items():
        if not name.startswith("icrc_full/"):
            continue
        ratio = row["ns"] / best[name.replace("icrc_full", "isal_same_bytes")]["ns"]
        arguments = dict(part.split(":") for part in name.split("/")[1:])
        what = f"ICRC against ISA-L, {arguments['payload']} B, IPv{arguments['ip']}"
        if int(arguments["payload"]) >= 1024:
            table.at_most(what, ratio, RATIO_ICRC, "x")
        else:
            table.row(f"{what}  ({row['ns']:.1f} ns)", f"{ratio:.2f} x")
    for field in sorted({r["label"] for n, r in best.items() if n.startswith("icrc_edit")}):
        rows = [r for n, r in best.items() if n.startswith("icrc_edit") and r["label"] == field]
        worst = max(r["ns"] for r in rows)
        what = f"edit with ICRC update, {field}, worst payload"
        if field in CLAIMED_EDITS:
            table.at_most(what, worst, NS_EDIT, "ns")
        else:
            table.row(what, f"{worst:.2f} ns")


def pipeline_rows(table, best):
    for row in best.values():
        note = f" ({row['label']})" if row.get("label") else ""
        table.row(f"engine, a packet: {row['name']}{note}", f"{row['cycles']:.1f} cycles")


def kernel_rows(table, best):
    """A kernel's packets per second, and its cost beside that of a bump without kernels, with as many flows."""
    empty = {r["flows"]: r["cycles"] for r in best.values() if r["label"] == "no kernel"}
    for row in sorted(best.values(), key=lambda r: (r["label"] != "no kernel", r["label"], r["flows"])):
        if row["flows"] not in empty:
            sys.exit(f"table: {row['label']}: no bump without kernels was measured with {row['flows']:.0f} flows")
        added = row["cycles"] - empty[row["flows"]]
        what = f"{row['label']}, {row['flows']:.0f} flows  ({added:+.0f} cycles)"
        if row["label"].startswith("scr, "):
            table.at_least(what, 1e3 / row["ns"], M_SCR_PACKETS, "Mpps")
        else:
            table.row(what, f"{1e3 / row['ns']:.2f} Mpps")


def stage_rows(table, best):
    """Where a packet's cycles go in a switch: the parts of a step, each as it was disturbed least."""
    for label, cycles in best.items():
        for stage in STAGES:
            note = f"  (parse alone {cycles['cycles/parse']:.0f})" if stage == STAGES[0] else ""
            table.row(f"{label}: {stage}{note}", f"{cycles['cycles/' + stage]:.0f} cycles")


def lowar_rows(table, best):
    """LoWAR's directions beside ISA-L's CRCs and XORs of the same packets, and many streams beside one."""
    for label, ns in best.items():
        judged = label.endswith("4096 B")
        payload = int(label.split()[-2])
        for way in "encode", "decode":
            for streams in 1, 64, 512:
                cost = ns[f"{way}/{streams}"]
                what = f"lowar {label}, {way}, {streams} streams"
                table.row(f"{what}  ({cost * ns['hz'] / 1e9:.0f} cycles, {payload * 8 / cost:.1f} Gbps)",
                          f"{1e3 / cost:.2f} Mpps")
                ratio = ns[f"{way}_isal/{streams}"] / cost
                if judged and streams == 64:
                    table.at_least(f"{what}, against ISA-L", ratio, RATIO_LOWAR, "x")
                else:
                    table.row(f"{what}, against ISA-L", f"{ratio:.2f} x")
            slower, isal = (ns[f"{name}/512"] / ns[f"{name}/1"] for name in (way, f"{way}_isal"))
            what = f"lowar {label}, {way}, 512 streams against 1  (ISA-L {isal:.2f} x)"
            if judged:
                table.at_most(what, slower, SLOWER_LOWAR, "x")
            else:
                table.row(what, f"{slower:.2f} x")


def new_flow_rows(table, folder):
    """What the first two packets of a flow cost, at 10,000 new flows a second, beside two of a flow that is known."""
    for row in repetitions(folder, "new_flows"):
        us = {name: value / 1e3 for name, value in row.items() if name.startswith(("first/", "known/"))}
        known = f"known: {us['known/p50']:.2f}, {us['known/p99']:.2f}, {us['known/max']:.2f}"
        what = f"new flow: {row['label']}"
        table.row(f"{what}  (us, p50, p99, max; {known})",
                  f"{us['first/p50']:.2f}, {us['first/p99']:.2f}, {us['first/max']:.2f}")
        table.at_most(f"{what}, more than a known one, p50", us["first/p50"] - us["known/p50"], US_NEW_FLOW, "us")
        table.at_most(f"{what}, more than a known one, p99", us["first/p99"] - us["known/p99"], US_NEW_FLOW_P99, "us")


def hash_rows(table, best):
    """The hash of flow tables beside xxHash."""
    sizes = sorted(int(name.split("/")[2]) for name in best if name.startswith("hash_bytes/burst/"))
    for size in sizes:
        ours, other = (f"{best[f'{name}/burst/{size}']['ns']:.1f} ns" for name in ("hash_bytes", "XXH3_64bits"))
        table.row(f"hash of {size} bytes, each of a burst  (XXH3 {other})", ours)
    ratio = max(best[f"hash_bytes/burst/{size}"]["ns"] / best[f"XXH3_64bits/burst/{size}"]["ns"] for size in FLOW_KEYS)
    table.at_most("hash of a flow's key against XXH3, at worst", ratio, RATIO_HASH, "x")


def event_queue_rows(table, folder):
    """What an event costs by structure and load, and by how much each structure is slower than the best for a load at worst."""
    loads, worst = {}, {}
    for row in repetitions(folder, "event_queue"):
        load, structure = row["name"].split("/")[:2]
        loads.setdefault(load, {})[structure] = row["cpu_time"]
    if not loads:
        return table.row("bench/micro/event_queue_bench", "skipped")
    for load, structures in loads.items():
        used = DEVICE_QUEUE if load == "devices" else EVENT_QUEUE
        others = ", ".join(f"{name} {ns:.0f}" for name, ns in structures.items() if name != used)
        table.row(f"event queue, {load}: ns an event  ({others})", f"{structures[used]:.0f} ns")
        for name, ns in structures.items():
            worst[name] = max(worst.get(name, 0), ns / min(structures.values()))
    rest = min(ns for name, ns in loads["devices"].items() if name != DEVICE_QUEUE)
    table.at_most("event queue, devices, against the best of the others", loads["devices"][DEVICE_QUEUE] / rest, 1.0, "x")
    table.at_most("event queue of timers, against the best for each load, at worst", worst[EVENT_QUEUE], RATIO_EVENT_QUEUE, "x")


def nic_rows(table, folder):
    """Two NICs back to back on one core: requester and responder together."""
    best, of_memcpy = {}, {}
    for row in repetitions(folder, "nic"):
        values = best.setdefault(row["label"], {})
        for name in ("message_ns", "packet_ns"):
            values[name] = min(row[name], values.get(name, row[name]))
        if "of_memcpy" in row:  # each repetition's own, taken in turn
            of_memcpy.setdefault(row["label"], []).append(row["of_memcpy"])
    if not best:
        return table.row("bench/micro/nic_bench", "skipped")
    rate = {label: 1e3 / values["message_ns"] for label, values in best.items()}
    for label, bound, goal in OF_MEMCPY_NIC:
        table.toward(f"nic, {label}  ({rate[label]:.2f} M/s), against two copies, median", statistics.median(of_memcpy[label]), bound, goal, "x")
    table.at_least("nic, WRITE 64 B", rate["WRITE 64 B"], M_NIC_SMALL, "M/s")
    headers = "WRITE 4096 B, headers alone"
    one = best[headers]["packet_ns"]
    table.at_least(f"nic, {headers}  ({one:.0f} ns a packet)", rate[headers], M_NIC_HEADERS, "M/s")
    for qps in 64, 8192:
        packet = best[f"{headers}, {qps} QPs"]["packet_ns"]
        what = f"nic, {headers}, {qps} QPs against 1  ({packet:.0f} ns a packet)"
        if qps == 8192:
            table.at_most(what, packet / one, SLOWER_NIC, "x")
        else:
            table.row(what, f"{packet / one:.2f} x")


def rates(folder, stem, counter):
    """Benchmark name -> the highest of a counter."""
    best = {}
    for row in repetitions(folder, stem):
        if counter in row:
            best[row["name"]] = max(row[counter], best.get(row["name"], 0))
    return best


def sdr_rows(table, folder):
    """SDR's receiver, in the library and as a program of the DPA; its codes, (32, 8) over 128 MiB in chunks of 64 KiB."""
    completions = {f"sdr, completions to bitmaps, chunks of {name.split('/')[1]}": rate
                   for name, rate in rates(folder, "sdr_messages", "items_per_second").items() if name.startswith("completions/")}
    for name, rate in rates(folder, "dpa", "items_per_second").items():
        way, _, packets = name.partition("/packets_a_chunk:")
        if packets:
            completions[f"dpa, the same by its program in C, {way.replace('_', ' ')}, chunks of {packets}"] = rate
    if not completions:
        return table.row("bench/micro/sdr_messages_bench, dpa_bench", "skipped")
    for what, rate in completions.items():
        table.at_least(f"{what}  (paper {M_SDR_PAPER:g}, 16 threads)", rate / 1e6, M_SDR, "M/s")
    watched = {name.partition("/")[2]: rate for name, rate in rates(folder, "dpa", "items_per_second").items() if name.startswith("watched/")}
    for name, rate in watched.items():
        table.row(f"dpa, packets that pass by, an activation each: {name}", f"{rate / 1e6:.2f} Mpps")
    observed = {name.partition("/")[2]: rate for name, rate in rates(folder, "sdr_messages", "items_per_second").items() if name.startswith("observed/")}
    if observed:
        bump = observed.pop("no_kernel")
        table.row("a bump without kernels, packets of SDR", f"{bump / 1e6:.2f} Mpps")
        for name, rate in observed.items():
            what = f"sdr in a path, {name.replace('_', ' ')}  ({rate / 1e6:.1f} Mpps with the bump)"
            if rate >= bump:
                table.row(what, "no more than the bump")
            elif name == "with_icrc":  # of packets that are longer than the bump's
                table.row(what, f"{rate / 1e6:.2f} Mpps")
            else:
                table.at_least(f"{what}, the kernel's own part", 1e-6 / (1 / rate - 1 / bump), M_SDR, "M/s")
    for what in ("device_bytes_a_message", "device_bytes_a_qp", "host_bytes_a_message", "host_bytes_a_qp"):
        for name, bytes_ in rates(folder, "sdr_messages", what).items():
            table.row(f"sdr, {what.replace('_', ' ')}, {name.split('/')[1]} packets a chunk", f"{bytes_:.0f} B")
    for name, ratio in rates(folder, "sdr_messages", "to_memcpy").items():
        table.at_least(f"sdr, packets of 4096 B placed, chunks of {name.split('/')[1]}, against memcpy", ratio, RATIO_SDR_PLACED, "x")
    codes = rates(folder, "sdr_codec", "bytes_per_second")
    isal = codes.pop("isal_direct")
    for name, rate in codes.items():
        what, ratio = f"sdr, {name.replace('/', ' ')}  ({rate * 8 / 1e9:.1f} Gbps a core), against ISA-L's MDS encoding", rate / isal
        if name in ("encode/mds_isal", "encode/mds_best"):
            table.at_least(what, ratio, RATIO_SDR_CODE, "x")
        else:
            table.row(what, f"{ratio:.2f} x")


def allgather_rows(table, folder):
    """The multicast Allgather's receive handlers on one core, beside one thread of the paper's DPA (Table I)."""
    chunks = rates(folder, "allgather", "items_per_second")
    if not chunks:
        return table.row("bench/micro/allgather_bench", "skipped")
    of_paper = rates(folder, "allgather", "to_table_1")
    for name, rate in chunks.items():
        way = name.partition("/")[0]
        what = f"allgather, {way.upper()} receive handler, chunks of 64 B  (Table I's thread: {of_paper[name]:.1f} times slower)"
        table.at_least(what, rate / 1e6, M_ALLGATHER[way], "M/s")
    for name, ratio in rates(folder, "allgather", "to_memcpy").items():
        rate = rates(folder, "allgather", "GB_a_second")[name]
        what = f"allgather, UD, chunks of 4 KiB copied to the buffer  ({rate:.1f} GB/s, {of_paper[name]:.1f} of Table I's thread), against memcpy"
        table.at_least(what, ratio, RATIO_ALLGATHER_COPIED, "x")


def multicast_rows(table, folder):
    """The kernel allgather on headers of chunks of 4 KiB, beside a bump without kernels, by sources in turn."""
    ns = {}
    for row in repetitions(folder, "multicast"):
        key = row["label"], int(row["name"].split("sources:")[1].split("/")[0])
        cost = 1e3 / row["mpps"]  # of CPU time
        ns[key] = min(cost, ns.get(key, cost))
    if not ns:
        return table.row("bench/micro/multicast_bench", "skipped")
    for (label, sources), cost in ns.items():
        bare = ns["no kernel", sources]
        if label != "no kernel":
            table.at_least(f"{label}, headers alone, {sources} sources  ({cost / bare:.1f} times a bump without it)", 1e3 / cost, M_ALLGATHER_PACKETS, "Mpps")
            if sources == 1024:
                table.at_most(f"{label}, {sources} sources against 1", cost / ns[label, 1], SLOWER_ALLGATHER, "x")


def scr_call(table, what, rows, names, calls=1):
    """One call through the interface and one without, and what is between them. `rows`: of times in ns, cycles, and instructions where they are
    counted; `names`: the benchmarks, and perhaps that of what is to be taken off the first; `calls`: in an iteration of the second."""
    def of(row, name, each=1):
        return row[name] / each - (row[names[2]] if len(names) > 2 and name == names[0] else 0)
    ns, cycles, instructions = rows
    time = [of(ns, names[0]), of(ns, names[1], calls)]
    said = [f"{time[i]:.1f} ns, {of(cycles, names[i]):.0f} cycles, " + (f"{of(instructions, names[i]):.0f} instructions" if set(names) <= set(instructions) else "instructions not counted")
            for i in (0, 1)]
    table.at_most(f"{what}  ({said[0]}), beside it called directly  ({said[1]})", time[0] - time[1], NS_SCR_CALL, "ns")


def scr_rows(table, folder):
    """SCR's events on one core, and what the interfaces of its programs add to a call."""
    ns, grain, cycles, instructions = {}, {}, {}, {}
    for row in repetitions(folder, "scr"):
        name = row["name"].split("/repeats")[0]
        ns[name] = min(row["cpu_time"], ns.get(name, row["cpu_time"]))
        grain[name] = row.get("bytes_per_event", 0)
        cycles[name] = min(row.get("cycles", 0), cycles.get(name, row.get("cycles", 0)))
        if "instructions" in row:
            instructions[name] = min(row["instructions"], instructions.get(name, row["instructions"]))
    if not ns:
        return table.row("bench/micro/scr_bench", "skipped")
    for how in "each_event", "with_latencies", "with_coalescing":
        table.at_least(f"scr, events through queues and water filling, {how.replace('_', ' ')}, 64 flows", 1e3 / ns[f"{how}/64"], M_SCR_EVENTS, "M/s")
        table.at_most(f"scr, {how.replace('_', ' ')}, 1024 flows against 64", ns[f"{how}/1024"] / ns[f"{how}/64"], SLOWER_SCR, "x")
    bytes_each = [grain[f"with_coalescing/{flows}"] for flows in (64, 256, 1024)]
    table.at_most(f"scr, bytes an event, 64, 256 and 1024 flows ({', '.join(f'{each:.0f}' for each in bytes_each)}), most against least",
                  max(bytes_each) / min(bytes_each), GRAIN_SCR, "x")
    counted = os.path.join(folder, "instructions_of_calls.json")
    if not instructions and os.path.exists(counted):
        with open(counted) as file:
            instructions = json.load(file)
    rows = ns, cycles, instructions
    scr_call(table, "scr, a call of Swift through the interface", rows, ("swift_through_the_interface", "swift_called_directly"))
    scr_call(table, "pcc, a call of Swift through the interface", rows, ("pcc_through_the_interface", "pcc_called_directly", "pcc_events_alone"), 1000)


def replay_rows(table, result):
    texts = {"ratio, best": "best", "ratio, best, without start": "best, without start"}
    for key, text in texts.items():
        what = f"replay against a bare libpcap loop, {text}"
        if key == result["judged"]:
            table.at_least(what, result[key], RATIO_REPLAY, "x")
        else:
            table.row(what, f"{result[key]:.2f} x")
    table.row("replay against a bare libpcap loop, median", f"{result['ratio, median']:.2f} x")
    table.row("replay against a bare libpcap loop, CPU time", f"{result['ratio, best, CPU time']:.2f} x")
    table.at_most("replay, peak memory for four times the capture", result["growth"], GROWTH_REPLAY, "x")
    table.row("replay, output equals input", "yes" if result["same_bytes"] else "no", "yes", result["same_bytes"])


def main():
    folder = sys.argv[1]
    table = Table()
    for stem, rows, read in (("parse", parse_rows, best_of), ("icrc", icrc_rows, best_of),
                             ("hash", hash_rows, best_of),
                             ("pipeline", pipeline_rows, best_of), ("kernel", kernel_rows, best_of),
                             ("stage", stage_rows, best_parts_of), ("lowar", lowar_rows, best_parts_of)):
        best = read(folder, stem)
        if best:
            rows(table, best)
        else:
            table.row(f"bench/micro/{stem}_bench", "skipped")
    new_flow_rows(table, folder)
    event_queue_rows(table, folder)
    nic_rows(table, folder)
    sdr_rows(table, folder)
    allgather_rows(table, folder)
    multicast_rows(table, folder)
    scr_rows(table, folder)
    with open(os.path.join(folder, "replay.json")) as file:
        replay_rows(table, json.load(file))
    print((f"{table.failed} claims fail" if table.failed else "all claims that were measured hold")
          + (f"; {table.missed} goals are missed" if table.missed else ""))
    return 1 if table.failed else 0


sys.exit(main())
