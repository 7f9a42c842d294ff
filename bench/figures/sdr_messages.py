# SPDX-License-Identifier: BSD-3-Clause
"""SDR over 3750 km at 400 Gbit/s in virtual time: sdr_messages.py BUILD_FOLDER [--messages N] [--isolated N]

First messages of random sizes up to 1 MiB over a line that loses 1%, duplicates 1% and reorders, by each layer, every byte
compared; then single messages of 16 MiB, whose mean completion time stands beside that of the model (4.2) drawn here from
the paper's text: chunks that are lost on their own, ACKs that are not."""
import math
import random
import tempfile
import pathlib

import closed_loops

RTT, RATE, CHUNK, MTU = 25e-3, 400e9, 65536, 4096
CONFIG = """
devices:
  near: {nic: {address: 10.0.0.1, rate: 400Gbps, dpa: {heap: 64MiB}}}
  far: {nic: {address: 10.0.0.2, rate: 400Gbps, dpa: {heap: 64MiB}}}
links:
  line: {between: [near.wire, far.wire], delay: 12500us, packets: 100000}
workloads:
  w: {type: sdr_messages, hosts: [near, far], rtt: 25ms, in_flight: 64, max_size: 1MiB}
pool: {small: 32768, large: 32768}
"""
LAYERS = {"selective repeat": {"reliability": "selective_repeat"},
          "selective repeat, NACKs": {"reliability": "selective_repeat_nack"},
          "MDS (32, 8)": {"reliability": "erasure_coding"},
          "XOR (32, 8)": {"reliability": "erasure_coding", "code": "xor"}}


def selective_repeat(chunks, drop, rto, samples=400):
    """E[T_SR(M)]: RTT + max over chunks of (injection + repetitions, an RTO each)."""
    injection, total, draw = CHUNK * 8 / RATE, 0, random.Random(1)
    for _ in range(samples):
        last = 0
        for i in range(1, chunks + 1):
            lost = int(math.log(1 - draw.random()) / math.log(drop)) if drop else 0
            last = max(last, i * injection + lost * (rto + injection))
        total += RTT + last
    return total / samples


def with_workload(**values):
    return {f"workloads.w.{key}": value for key, value in values.items()}


def main():
    options = closed_loops.arguments(__doc__, messages=(10000, "of random sizes"), isolated=(100, "alone on the line"))
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(CONFIG)
        file.flush()
        config = pathlib.Path(file.name)
        bad = {"links.line.loss": "1%", "links.line.duplicate": "1%", "links.line.jitter": "20us", "links.line.jitter_reorders": "true"}
        points = [{**bad, **with_workload(messages=options.messages, chunk="16KiB", **layer)} for layer in LAYERS.values()]
        rows = []
        for name, runs in zip(LAYERS, closed_loops.run_all(options, config, points)):
            details = [run.workload("w")["details"] for run in runs]
            rows.append([name, *(sum(one[key] for one in details) for key in ("received", "mismatches", "failed", "repetitions",
                                                                            "recovered_chunks", "fallbacks"))])
        closed_loops.table(["layer", "messages", "wrong", "failed", "chunks repeated", "recovered", "fallbacks"], rows)
        print()
        packet_drop, size = 1e-4, 16 << 20
        drop = 1 - (1 - packet_drop) ** (CHUNK // MTU)
        chunks = size // CHUNK
        expected = {"selective repeat": selective_repeat(chunks, drop, 3 * RTT),
                    "MDS (32, 8)": (chunks + chunks / 4) * CHUNK * 8 / RATE + RTT}
        points = [{"links.line.forward.loss": f"{packet_drop * 100}%",
                   **with_workload(messages=options.isolated, in_flight=1, min_size=size, max_size=size, **LAYERS[name])}
                  for name in expected]
        rows = []
        for name, runs in zip(expected, closed_loops.run_all(options, config, points)):
            ours = closed_loops.mean(runs, lambda run: run.workload("w")["details"]["mean_completion_ns"]) / 1e9
            rows.append([name, f"{ours * 1e3:.2f}", f"{expected[name] * 1e3:.2f}", f"{ours / expected[name]:.3f}"])
        closed_loops.table(["layer, 16 MiB alone", "ours, ms", "model, ms", "ratio"], rows)


if __name__ == "__main__":
    main()
