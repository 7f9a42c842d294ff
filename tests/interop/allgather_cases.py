# SPDX-License-Identifier: BSD-3-Clause
"""A machine with Linux's Soft-RoCE as one rank of a multicast Allgather, whose other ranks are NICs of rocebox. Its program,
configs/lab/vm/guest/allgather_rank.c, shares no code with them. Mixed into a test that has the machines."""
import json
import subprocess

import bed

SIZE, MTU = 40000, 1024
CHUNKS = -(-SIZE // MTU)
OURS = ("10.77.0.11", "10.77.0.12")
LOSS = ", match: {opcode: 0x65}, loss: 20%"


class AllgatherCases:
    def network(self, link):
        """Two NICs, a switch, and the left machine behind the kernel `allgather`; ranks 0 and 1, the machine is rank 2."""
        ranks = f"ranks: [{', '.join(OURS)}, {self.left.address}]"
        team = f"type: multicast_allgather, size: {SIZE}, mtu: {MTU}, alpha: {'3s' if link else '60s'}, timeout: 60s, join_timeout: 110s, local_ack_timeout: 16"
        config = self.folder / "allgather.yaml"
        config.write_text("devices:\n" + "".join(
            f"  n{i}: {{nic: {{address: {address}, mtu: 1500}}}}\n" for i, address in enumerate(OURS)) + f"""
  s: {{switch: {{ports: [a, b, machine]}}}}
  tap: {{path: net <-> allgather <-> wire}}
links:
  l0: {{between: [n0.wire, s.a]}}
  l1: {{between: [n1.wire, s.b]}}
  cable: {{between: [s.machine, tap.net]{link}}}
workloads:
  r0: {{hosts: [n0], {team}, {ranks}}}
  r1: {{hosts: [n1], {team}, {ranks}}}
ports:
  tap.wire: {{af_packet: {self.left.tap}, rx_descriptors: 4096}}
live: {{idle: interrupt}}   # the machine needs the cores
""")
        process = subprocess.Popen([bed.ROCEBOX, "run", config, "--json", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        return process

    def test_e_soft_roce_is_a_rank_of_a_multicast_allgather(self):
        if subprocess.run(self.left.command(["which", "allgather_rank"]), capture_output=True).returncode:
            self.skipTest("no allgather_rank in the machine: `build_image.sh` says why when it makes the image")
        self.left.set_mtu(1500)  # tests before may have set another: RDMA CM asks for what its interface can carry
        for link in ("", LOSS):
            with self.subTest(link):
                machine = self.left.begin("allgather_rank", "-s", SIZE, "-m", MTU, "-c", 3, *OURS, self.left.address, seconds=240)
                self.addCleanup(self.end_server, machine)
                out, error = self.network(link).communicate(timeout=300)
                said = machine.communicate(timeout=120)[0]
                self.assertEqual(machine.returncode, 0, said)
                self.assertIn(f"rank 2 of 3: {CHUNKS} chunks a block", said)
                self.assertIn(" 0 bytes wrong", said)
                report = json.loads(out)
                self.ours_agree(report, link, error)
                # Chunks of the machine, as the kernel `allgather` sees them in front of it, and of the others behind the cable.
                streams = {row["source"]: row for row in report["devices"]["tap"]["kernels"]["allgather"]["streams"]}
                own = streams[self.left.address]
                self.assertEqual((own["chunks"], own["missing"], own["duplicates"], own["bytes"]), (CHUNKS, 0, 0, SIZE))
                self.assertEqual((own["lowest_number"], own["highest_number"]), (2 * CHUNKS, 3 * CHUNKS - 1))
                fetched = int(said.split(" fetched")[0].split()[-1])
                if link:
                    self.assertGreater(2 * CHUNKS, sum(streams[address]["chunks"] for address in OURS if address in streams))
                    self.assertGreater(fetched, 0)
                print(f"  multicast Allgather with Soft-RoCE: {said.strip()}", flush=True)

    def ours_agree(self, report, link, error):
        for number in range(2):
            details = report["workloads"][f"r{number}"]["details"]
            self.assertEqual((details["rank_number"], details["ranks"], details["error"]), (number, 3, ""), error)
            self.assertEqual((details["released_whole"], details["wrong_bytes"], details["wrong_blocks"]), (1, 0, 0), details)
            self.assertEqual((details["chunks_of_strangers"], details["chunks_of_wrong_length"], details["bad_messages"]), (0, 0, 0), details)
            if not link:
                self.assertEqual(details["chunks_received"], 2 * CHUNKS)
