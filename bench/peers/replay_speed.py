# SPDX-License-Identifier: BSD-3-Clause
"""Runs the pairs for replay_speed.sh and judges them. usage: replay_speed.py BUILD_FOLDER WORK_FOLDER [JSON_FILE]"""
import filecmp
import json
import os
import statistics
import sys
import time

ROUNDS = 3
RATIO_MIN = 0.5
GROWTH_MAX = 1.10
WHOLE_RUN_BYTES = 1_000_000_000  # from here on the start of a program is part of what is judged


def run(argv, log):
    """Wall seconds, CPU seconds and peak resident KiB of one run."""
    start = time.monotonic()
    with open(log, "wb") as out:
        pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1)])
        _, status, usage = os.wait4(pid, 0)
    seconds = time.monotonic() - start
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"replay_speed: failed: {' '.join(argv)}")
    return {"wall": seconds, "cpu": usage.ru_utime + usage.ru_stime, "kib": usage.ru_maxrss}


def main():
    build, work = sys.argv[1:3]
    copy, log = f"{work}/copy.pcap", f"{work}/log"
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

    def bare(size):
        return run([f"{build}/bench/bare_copy", f"{work}/{size}.pcap", copy], log)

    def replay(size):
        return run([f"{build}/rocebox", "replay", f"{work}/{size}.yaml"], log)

    def settle():
        # The next run must neither wait for the last one's pages to reach the disk, nor truncate them.
        os.unlink(copy)
        os.sync()

    runs = {"bare": [], "replay": []}
    starts = {"bare": [], "replay": []}
    small = {}
    for name, program in (("bare", bare), ("replay", replay)):  # the first runs warm the page cache
        small[name] = program("quarter")
        settle()
        program("full")
        same = name == "bare" or filecmp.cmp(copy, f"{work}/full.pcap", shallow=False)
        settle()
    for _ in range(ROUNDS):
        for name, program in (("bare", bare), ("replay", replay)):
            starts[name].append(program("start"))
            runs[name].append(program("full"))
            if name == "bare":
                packets = int(open(log).read())
            settle()

    def rate(name, key, pick):
        return packets / pick(r[key] for r in runs[name])

    result = {"packets": packets, "same_bytes": same, "rounds": ROUNDS}
    print(f"replay_speed: {packets} packets, {os.path.getsize(f'{work}/full.pcap') / 1e6:.0f} MB, {ROUNDS} rounds, CPU {max(os.sched_getaffinity(0))}")
    for key, pick, text in (("wall", min, "best"), ("wall", statistics.median, "median"), ("cpu", min, "best, CPU time")):
        bare_rate, replay_rate = rate("bare", key, pick), rate("replay", key, pick)
        result[f"ratio, {text}"] = replay_rate / bare_rate
        print(f"  {text:15s} bare {bare_rate / 1e6:6.3f} Mpps   replay {replay_rate / 1e6:6.3f} Mpps   ratio {replay_rate / bare_rate:5.2f}")
    start = {name: min(r["wall"] for r in starts[name]) for name in starts}
    best = {name: min(r["wall"] for r in runs[name]) for name in runs}
    result["ratio, best, without start"] = (best["bare"] - start["bare"]) / (best["replay"] - start["replay"])
    result["judged"] = "ratio, best" if os.path.getsize(f"{work}/full.pcap") >= WHOLE_RUN_BYTES else "ratio, best, without start"
    print(f"  start           bare {start['bare']:.3f} s   replay {start['replay']:.3f} s   ratio without it"
          f" {result['ratio, best, without start']:5.2f}")
    full = min(r["kib"] for r in runs["replay"])
    result["growth"] = full / small["replay"]["kib"]
    print(f"  peak memory     replay {small['replay']['kib']} KiB for a quarter, {full} KiB for all: x {result['growth']:.3f}")
    if not same:
        print("  the replay's output differs from its input")
    result["ok"] = same and result[result["judged"]] >= RATIO_MIN and result["growth"] <= GROWTH_MAX
    if len(sys.argv) > 3:
        with open(sys.argv[3], "w") as out:
            json.dump(result, out)
    return 0 if result["ok"] else 1


sys.exit(main())
