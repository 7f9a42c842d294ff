# SPDX-License-Identifier: BSD-3-Clause
"""Forwarders that are measured on the same ports and core: how each is run, and its packets per second of its core."""
import contextlib
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

SAMPLE_S = 0.02
BURST = 32


def fail(why):
    """Ends the measurement: it could not be made."""
    print(f"{pathlib.Path(sys.argv[0]).stem}: {why}", file=sys.stderr)
    sys.exit(2)


def run_measured(words, interrupt_after_s=math.inf, env=None):
    """Runs a forwarder to its end: its exit status, its output, and the mean time in seconds that its workers had a CPU. Time that
    others had the CPU is not counted, so that what else runs on the machine disturbs little. `env`: added to the environment."""
    process = subprocess.Popen(words, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    cpu_ns = {}
    output = []
    reader = threading.Thread(target=lambda: output.append(process.stdout.read()))
    reader.start()
    end = time.monotonic() + interrupt_after_s
    while process.poll() is None:
        if time.monotonic() > end:
            process.send_signal(signal.SIGINT)
            end = math.inf
        for task in pathlib.Path(f"/proc/{process.pid}/task").glob("*"):
            try:
                if (task / "comm").read_text().startswith("rte-worker"):  # EAL's name for them, in all of these programs
                    cpu_ns[task.name] = int((task / "schedstat").read_text().split()[0])
            except OSError:
                pass  # it has just ended
        time.sleep(SAMPLE_S)
    reader.join()
    if not cpu_ns:
        fail(f"{words[0]} did not run: {output[0][-500:]}")
    return process.returncode, output[0], sum(cpu_ns.values()) / len(cpu_ns) * 1e-9


def has_hugepages():
    """Whether rocebox would use hugepages: the others then do so, too."""
    return any(int(path.read_text()) for path in pathlib.Path("/sys/kernel/mm/hugepages").glob("*/free_hugepages"))


def eal(vdevs, core, mebibytes=512):
    """EAL's arguments: one worker, on `core`, and memory as rocebox chooses it."""
    memory = ["--in-memory"] if has_hugepages() else ["--no-huge", "-m", str(mebibytes)]
    words = ["-l", f"0,{core}", *memory, "--no-pci", "--file-prefix", f"rbpeer{os.getpid()}"]
    for vdev in vdevs:
        words += ["--vdev", vdev]
    return words


@contextlib.contextmanager
def eal_folder():
    """An environment in which EAL keeps its files in a folder that goes: without hugepages it leaves them where they are."""
    with tempfile.TemporaryDirectory(prefix="rocebox-eal-") as folder:
        yield {"RUNTIME_DIRECTORY": folder}


def testpmd(mode, vdevs, core, seconds, packets, more=(), env=None):
    """Packets that arrive at all ports together per second of its core. `packets`: in its pool."""
    if not shutil.which("dpdk-testpmd"):
        fail("dpdk-testpmd is not installed (package dpdk)")
    words = ["dpdk-testpmd", *eal(vdevs, core), "--", f"--forward-mode={mode}", "--nb-cores=1", "--auto-start",
             "--stats-period", "1", "--total-num-mbufs", str(packets), "--burst", str(BURST), *more]
    with eal_folder() as place:
        _, output, cpu_s = run_measured(words, seconds + 2, {**place, **(env or {})})
    totals = re.findall(r"RX-packets: (\d+)", output.split("Accumulated forward statistics")[-1])
    if not totals:
        fail("dpdk-testpmd did not run: " + output[-500:])
    return int(totals[0]) / cpu_s


def rocebox(build, folder, config, cores, seconds, env=None):
    """Packets that arrive at all ports together per second of its cores' mean time, and the report. `config`: YAML."""
    path, out = pathlib.Path(folder) / "run.yaml", pathlib.Path(folder) / "run.json"
    path.write_text(config)
    status, output, cpu_s = run_measured([f"{build}/rocebox", "run", str(path), "--cores", cores,
                                          "--duration", f"{seconds}s", "--json", str(out)], env=env)
    if status != 0:
        fail(output)
    report = json.loads(out.read_text())
    if report["run"]["pool_in_use"] != report["run"]["pool_idle"]:
        fail("packets are missing from the pool")
    return sum(port["rx_packets"] for port in report["ports"]) / cpu_s, report
