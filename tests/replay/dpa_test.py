#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The kernel dpa on real captures: what a device program counts is what tshark shows, and the README's commands run."""
import json
import re
import shutil
import subprocess

from common import CAPTURES, HERE, ROCEBOX, RoceboxTest, finish, tshark

ROOT = HERE.parent.parent
# Captures without losses, retransmissions or READs: each message that completes there has one packet that says so.
CLEAN = ("rc_send", "rc_send_imm", "rc_write_imm", "uc_send", "uc_write_imm", "ud_send", "ud_send_imm", "multi_qp", "perftest_send")
SENDS = {0x02, 0x03, 0x04, 0x05, 0x16, 0x17}
WRITE_IMMS = {0x09, 0x0B}


def completions(capture):
    """(QPN, low opcode, immediate) of each packet that ends a message that completes a receive."""
    rows = []
    for opcode, qpn, immediate in tshark(capture, "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.immdt"):
        if not opcode or int(opcode) >> 5 not in (0, 1, 3) or int(qpn, 16) <= 1:
            continue
        if int(opcode) & 0x1F in SENDS | WRITE_IMMS:
            rows.append((int(qpn, 16), int(opcode) & 0x1F, immediate.split(",")[0]))  # tshark shows it twice
    return rows


class Dpa(RoceboxTest):
    def run_line(self, capture, *options):
        out = self.dir / "report.json"
        self.rocebox("replay", "--from", capture, "--json", out, "--", "dpa", *options)
        return json.loads(out.read_text())["devices"]["bump"]["kernels"]["dpa"]

    def test_a_program_counts_what_tshark_shows(self):
        seen = 0
        for name in CLEAN:
            with self.subTest(name):
                capture = CAPTURES / f"{name}.pcap"
                want = completions(capture)
                said = self.run_line(capture, "results=[counter_messages]", "threads=3")
                self.assertEqual(said["counters"]["cqes"], len(want))
                # The program takes SENDs with immediate for something else.
                plain = [row for row in want if row[1] not in (0x03, 0x05)]
                self.assertEqual(said["results"][0]["value"], len(plain))
                self.assertEqual(sum(row["cqes"] for row in said["dpa_threads"] if row["handler"] == "counter_handler"), len(want))
                self.assertEqual(said["error"], "")
                seen += len(want)
        self.assertGreater(seen, 30)

    def test_bits_of_immediates(self):
        for name in ("rc_write_imm", "uc_write_imm"):
            capture = CAPTURES / f"{name}.pcap"
            bits = {int(row[2], 16) for row in completions(capture) if row[1] in WRITE_IMMS}
            self.assertTrue(bits)
            low = {bit for bit in bits if bit < 65536}
            said = self.run_line(capture, "program=bitmap", "host_bytes=8192")
            self.assertEqual(said["bits_set"], len(low), name)
            self.assertEqual(said["endpoints"][0]["errors"], len([r for r in completions(capture) if int(r[2] or "0", 16) not in low]))

    def test_losses_make_no_cqe(self):
        """RC: what is sent again counts once, so that both sides of a lossy link end with the same messages."""
        for name in ("rc_send_loss", "rc_write_dup", "rc_write_reorder"):
            captures = [CAPTURES / f"{name}_{side}.pcap" for side in ("tx", "rx")]
            counts = [self.run_line(capture)["counters"] for capture in captures]
            with self.subTest(name):
                self.assertEqual(counts[0]["cqes"], counts[1]["cqes"])
                # WRITEs without immediate have none: there it is what the counters say that must have been seen.
                self.assertEqual(counts[0]["cqes"] > 0, name == "rc_send_loss")
                self.assertGreater(counts[1]["out_of_sequence"] + counts[1]["duplicate_request"], 0)

    def test_what_leaves_is_what_came(self):
        capture = CAPTURES / "multi_qp.pcap"
        config = self.config(f"""
devices: {{d: {{path: a <-> dpa <-> b, kernels: {{dpa: {{program: echo, threads: 4}}}}}}}}
ports: {{d.a: {{pcap: {{in: {capture}}}}}, d.b: {{pcap: {{out: {self.dir}/out.pcap}}}}}}
""")
        self.replay(config)
        frames = [subprocess.run(["tshark", "-n", "-r", str(path), "-x"], capture_output=True, check=True).stdout
                  for path in (capture, self.dir / "out.pcap")]
        self.assertEqual(frames[0], frames[1])

    def test_a_program_of_ones_own(self):
        compiler = shutil.which("cc")
        if not compiler:
            self.skipTest("there is no C compiler")
        source = self.dir / "sizes.c"
        source.write_text("""
#define ROCEBOX_DPA_PROGRAM
#include <dpaintrin.h>
#include "endpoint.h"
static uint64_t largest;
__dpa_rpc__ uint64_t largest_message(uint64_t unused) { (void)unused; return largest; }
__dpa_global__ void on_message(uint64_t argument) {
  struct endpoint *e = (struct endpoint *)argument;
  while (has_cqe(e)) {
    const uint32_t bytes = flexio_dev_cqe_get_byte_cnt(next_cqe(e));
    if (bytes > largest) {
      largest = bytes;
      flexio_dev_print("QP %x: %u bytes\\n", flexio_dev_cqe_get_qpn(next_cqe(e)), bytes);
    }
    step_cq(e);
    return_buffer(e);
  }
  flexio_dev_cq_arm(0, e->cq_index, e->cq_number);
  flexio_dev_thread_reschedule();
}
""")
        program = self.dir / "sizes.so"
        subprocess.run([compiler, "-O2", "-fPIC", "-shared", "-fno-stack-protector", f"-I{ROOT}/nic_model/dpa/include",
                        f"-I{ROOT}/nic_model/dpa/programs", "-o", program, source], check=True)
        said = self.run_line(CAPTURES / "rc_send.pcap", f"file={program}", "handler=on_message", "results=[largest_message, none]")
        largest = said["results"][0]["value"]
        self.assertGreater(largest, 0)
        self.assertTrue(said["messages"][-1]["message"].endswith(f": {largest} bytes"), said["messages"])
        self.assertEqual(said["results"][1]["why_not"], "the program has no such function")

    def test_mistakes_are_named(self):
        for words, what in ((["program=cuonter"], "is none of: bitmap, chunks, counter"), ([f"file={__file__}", "handler=x"], "is no shared object"),
                            (["threads=300"], "256"), (["threads=200", "cq_entries=16384"], "do not fit"), (["cq_entries=100"], "power of two"),
                            (["threads=3", "engine.cores=1", "engine.threads_per_core=2"], "more than the engine has")):
            _, error = self.rocebox("replay", "--from", CAPTURES / "rc_send.pcap", "--", "dpa", *words, status=2)
            self.assertIn(what, error, words)

    def test_the_commands_of_the_readme_run(self):
        (block,) = re.findall(r"^```sh\n(.*?)^```", (ROOT / "kernels/dpa/README.md").read_text(), re.S | re.M)
        (self.dir / "trace.pcap").symlink_to(CAPTURES / "uc_write_imm.pcap")
        commands = [line.split("  #")[0].strip() for line in block.splitlines()]
        self.assertGreater(len(commands), 3)
        for command in commands:
            done = subprocess.run(["bash", "-c", f"rocebox() {{ '{ROCEBOX}' \"$@\"; }}; {command}"], cwd=self.dir, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)
            self.assertIn("cqes", done.stdout)


if __name__ == "__main__":
    finish.main()
