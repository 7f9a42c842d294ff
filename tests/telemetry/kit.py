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
CAPTURE = ROOT / "tests/replay/captures/multi_qp.pcap"
ROCEBOX = os.environ.get("ROCEBOX", str(ROOT / "build/release/rocebox"))
SOCKET = "dpdk_telemetry.v2"
SKIPPED = 77
POOL = "pool: {small: 12288, large: 512, giant: 16}\n"
# Every device and port shares a part of the report with no other; the wire goes through a link.
FABRIC = """devices:
  near: {path: a <-> link <-> inspect <-> b, kernels: {link: {forward: {loss: 10%}}}}
  far: {path: c <-> d}
links:
  haul: {between: [near.b, far.c], delay: 1ms}
"""


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
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(20)
        self.socket.connect(str(path))
        self.greeting = json.loads(self.socket.recv(1024))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def cmd(self, uri, arg=None):
        self.socket.send((uri if arg is None else f"{uri},{arg}").encode())
        return json.loads(self.socket.recv(self.greeting["max_output_len"]))[uri]


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
        out, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, error)
        return json.loads(out)

    def rocebox(self, *words, status=0, **more):
        done = subprocess.run([ROCEBOX, *map(str, words)], capture_output=True, text=True, timeout=60,
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
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)

    def wait_until_still(self, client):
        """Returns when the capture has come in and nothing moves any more."""
        before = {}

        def still():
            now = {name: client.cmd("/rocebox/port", name)["device"] for name in ("near.a", "far.d")}
            same = now == before and now["near.a"]["rx_packets"] > 0 and client.cmd("/rocebox/link", "haul")["counters"]["packets_held"] == 0
            before.update(now)
            return same
        self.wait_until(still, "the capture did not come to its end")
        time.sleep(0.1)


def main():
    for driver in ("librte_net_pcap.so", "librte_net_ring.so"):
        if not list(pathlib.Path("/usr/lib").glob(f"*/{driver}*")) and not list(pathlib.Path("/usr/lib").glob(f"*/dpdk/pmds-*/{driver}*")):
            print(f"skipped: DPDK's driver {driver} is not installed")
            sys.exit(SKIPPED)
    run = unittest.main(exit=False).result
    for test, reason in run.skipped:
        print(f"skipped: {test.id()}: {reason}", file=sys.stderr)
    sys.exit(1 if not run.wasSuccessful() else SKIPPED if run.skipped else 0)
