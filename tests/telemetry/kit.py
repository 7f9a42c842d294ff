# SPDX-License-Identifier: BSD-3-Clause
"""Live runs that need no privilege: packets of a capture come in, once, and go into a file."""
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import finish  # noqa: E402
import priority  # noqa: E402

priority.come_first()
CAPTURE = ROOT / "tests/replay/captures/multi_qp.pcap"
ROCEBOX = os.environ.get("ROCEBOX", str(ROOT / "build/release/rocebox"))
SOCKET = "dpdk_telemetry.v2"
# Seconds, of a test that hangs. Nothing that a test asserts may depend on how long anything took.
HANGS = 120
POOL = "pool: {small: 12288, large: 512, giant: 16}\n"
# Every device and port shares a part of the report with no other; the wire goes through a link.
FABRIC = """devices:
  near: {path: a <-> link <-> inspect <-> b, kernels: {link: {forward: {loss: 10%}}}}
  far: {path: c <-> d}
links:
  haul: {between: [near.b, far.c], delay: 1ms}
"""


def has_thread_sanitizer():
    """Whether the command is built with it, by whichever compiler."""
    return b"__tsan_init" in pathlib.Path(ROCEBOX).read_bytes()


def many_small_packets():
    """A capture of 50,000 RoCE packets of up to 128 bytes: some of the loops that they take are timed."""
    whole = CAPTURE.read_bytes()
    records, at = [], 24
    while at < len(whole):
        size = 16 + struct.unpack_from("<I", whole, at + 8)[0]
        if size <= 16 + 128:
            records.append(whole[at:at + size])
        at += size
    return whole[:24] + b"".join(records) * (50_000 // len(records))


class Client:
    """DPDK's protocol v2, as its documentation tells it."""

    def __init__(self, path):
        end = time.monotonic() + HANGS
        while True:
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.socket.settimeout(HANGS)
            self.socket.connect(str(path))
            greeting = self.socket.recv(1024)
            if greeting or time.monotonic() > end:
                break
            self.socket.close()  # it has ten clients already, some of which may have gone without its having had the time to see
            time.sleep(0.05)
        self.greeting = json.loads(greeting)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def cmd(self, uri, arg=None):
        self.socket.send((uri if arg is None else f"{uri},{arg}").encode())
        return json.loads(self.socket.recv(self.greeting["max_output_len"]))[uri]


class Rest:
    """Whether a run has taken all that came, and holds nothing: each core has looked for packets in vain again and again. That
    takes as long as the machine lets it take. `ask` gives an answer of /rocebox/run."""
    LOOKS = 1000

    def __init__(self, ask):
        self.ask, self.begin = ask, {}

    def __call__(self):
        told = self.ask()
        now = {number: (shard["loops"], shard["busy_loops"]) for number, shard in told["shards"].items()}
        if told["packets_held"] or any(now[n][1] != self.begin.get(n, (0, -1))[1] for n in now):
            self.begin = now
            return False
        return all(now[n][0] - self.begin[n][0] >= self.LOOKS for n in now)


class RunTest(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="rbt-", dir="/tmp"))  # short: it is in the paths of sockets
        self.children = []
        self.addCleanup(self.take_down)
        # Instances of a test are seen by that test.
        self.env = {**os.environ, "RUNTIME_DIRECTORY": str(self.dir / "run"), "XDG_RUNTIME_DIR": str(self.dir / "xdg")}
        (self.dir / "run").mkdir()
        self.capture = self.dir / "in.pcap"
        self.capture.write_bytes(many_small_packets())

    def take_down(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.communicate()
        shutil.rmtree(self.dir, ignore_errors=True)

    def config(self, name="run.yaml", more="", top=FABRIC):
        path = self.dir / name
        ports = (f'ports:\n  near.a: {{devargs: "net_pcap0,rx_pcap={self.capture},tx_pcap={self.dir}/{name}.back.pcap"}}\n'
                 f'  far.d: {{devargs: "net_pcap1,tx_pcap={self.dir}/{name}.there.pcap"}}\n')
        path.write_text(top + ports + POOL + more)
        return path

    def child(self, *words, **more):
        process = subprocess.Popen([str(w) for w in words], text=True,
                                   **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": self.env, **more})
        self.children.append(process)
        return process

    def start(self, config, *words, **more):
        """Returns the run and its status line, once packets flow."""
        process = self.child(ROCEBOX, "run", config, "--json", "-", *words, **more)
        said = ""
        while "port(s)" not in said:
            line = process.stderr.readline()
            if not line:
                self.fail(f"the run did not start: {said}")
            said += line
        return process, said

    def stop(self, process, how=signal.SIGINT):
        process.send_signal(how)
        out, error = process.communicate(timeout=HANGS)
        self.assertEqual(process.returncode, 0, error)
        return json.loads(out)

    def rocebox(self, *words, status=0, **more):
        done = subprocess.run([ROCEBOX, *map(str, words)], capture_output=True, text=True, timeout=HANGS,
                              **{"env": self.env, **more})
        self.assertEqual(done.returncode, status, f"{words}\n{done.stdout}\n{done.stderr}")
        return done

    def folder(self, name, directory=None):
        return pathlib.Path(directory or self.dir / "run") / "dpdk" / f"rocebox-{name}"

    def client(self, name):
        client = Client(self.folder(name) / SOCKET)
        self.addCleanup(client.socket.close)
        return client

    def wait_until(self, condition, what):
        end = time.monotonic() + HANGS
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)

    def wait_until_still(self, client):
        """Returns when the capture has come in and nothing moves any more."""
        self.wait_until(lambda: client.cmd("/rocebox/port", "near.a")["device"]["rx_packets"] > 0, "the capture did not come")
        self.wait_until(Rest(lambda: client.cmd("/rocebox/run")), "the capture did not come to its end")


def main():
    for driver in ("librte_net_pcap.so", "librte_net_ring.so"):
        if not list(pathlib.Path("/usr/lib").glob(f"*/{driver}*")) and not list(pathlib.Path("/usr/lib").glob(f"*/dpdk/pmds-*/{driver}*")):
            print(f"skipped: DPDK's driver {driver} is not installed")
            sys.exit(finish.SKIPPED)
    finish.main()
