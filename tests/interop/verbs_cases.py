# SPDX-License-Identifier: BSD-3-Clause
"""Every verb of every transport between a device of kind `nic` and a machine with Linux's Soft-RoCE, each in both directions,
with and without loss; and rdmacm-utils' ucmatose both ways. Mixed into a test that has the machines and NicCases."""
import subprocess

RC_VERBS = ("send", "send_with_imm", "write", "write_with_imm", "read", "fetch_add", "compare_swap")
UC_VERBS, UD_VERBS = RC_VERBS[:4], RC_VERBS[:2]
GROUPS = ("239.77.1.2", "ff1e::77:1")
MESSAGES, BYTES, ONE_PACKET = 32, 5000, 900
# The whole of RDMA CM for one connection.
CONNECTION = {"REQ": 1, "REP": 1, "RTU": 1, "DREQ": 1, "DREP": 1}


def cases(rows):
    """As YAML."""
    return ", ".join("{" + ", ".join(f"{key}: '{value}'" if key == "group" else f"{key}: {value}" for key, value in row.items())
                     + "}" for row in rows)


class VerbsCases:
    def check(self, rows, link=""):
        """The cases with a server in the machine; `link` are faults. Returns the NIC's report, its counters and the rows."""
        if subprocess.run(self.left.command(["which", "verbs_check"]), capture_output=True).returncode:
            self.skipTest("no verbs_check in the machine: `build_image.sh` says why when it makes the image")
        server = self.left.begin("verbs_check", seconds=200)
        self.addCleanup(self.end_server, server)
        self.left.run("sh", "-c", "until rdma resource show cm_id | grep -q LISTEN; do sleep 0.2; done")
        process = self.nic(f"workloads:\n  check: {{type: verbs_check, hosts: [nic], address: {self.left.address}, size: {BYTES}, "
                           f"messages: {MESSAGES}, cases: [{cases(rows)}]}}", link)
        report, counters = self.nic_report(process, stop=False)
        said = server.communicate(timeout=60)[0]
        found = report["workloads"]["check"]["details"]
        self.assertEqual((found["error"], found["wrong_messages"], server.returncode), ("", 0, 0), said)
        for row in found["cases"]:
            self.assertEqual((row["status"], row["completed"]), ("success", MESSAGES), row)
        return report, counters, found["cases"]

    @staticmethod
    def end_server(server):
        """Not to stand beside the next one."""
        if server.poll() is None:
            server.terminate()
            server.communicate()

    def test_a_every_verb_of_every_transport_both_ways(self):
        rows = [{"transport": transport, "verb": verb}
                for transport, verbs in (("RC", RC_VERBS), ("UC", UC_VERBS), ("UD", UD_VERBS)) for verb in verbs]
        rows += [{"transport": "UD", "verb": verb, "group": group} for group in GROUPS for verb in UD_VERBS]
        report, counters, found = self.check(rows)
        expected = [(row["transport"], row["verb"], row.get("group", ""), side) for row in rows for side in ("client", "server")]
        self.assertEqual([(row["transport"], row["verb"], row["group"], row["requester"]) for row in found], expected)
        self.assertEqual([row for row in found if row["whole"] != MESSAGES], [], "every byte of every message")
        # What the cases say of themselves is what the wire bore.
        data = len(GROUPS) * len(UD_VERBS) * MESSAGES
        self.assertEqual((counters["multicast_xmit_packets"], counters["multicast_rcv_packets"]), (data, data))
        self.assertEqual((counters["multicast_copies"], counters["drop_multicast"]), (data, 0))
        self.assertEqual(counters["rx_read_requests"], MESSAGES)
        self.assertEqual(counters["rx_atomic_requests"], 2 * MESSAGES)
        self.assertEqual(counters["rx_write_requests"], 4 * MESSAGES)
        flows = [flow for flow in report["devices"]["tap"]["kernels"]["inspect"]["flows"]
                 if flow["source"] in (self.address, self.address6)]
        acknowledges = sum(flow["opcodes"].get("rc_acknowledge", 0) for flow in flows)
        self.assertEqual(acknowledges, counters["acks_sent"] + counters["naks_sent"] + counters["rnr_naks_sent"])
        self.wire_is_clean(**CONNECTION)
        self.assertEqual(len(self.icrcs()), counters["tx_roce_packets"] + counters["rx_roce_packets"], "each was recalculated")

    def test_b_every_verb_through_loss(self):
        rows = [{"transport": "RC", "verb": verb} for verb in RC_VERBS]
        rows += [{"transport": transport, "verb": verb} for transport in ("UC", "UD") for verb in UD_VERBS]
        # Soft-RoCE's own UC responder does not get over a WRITE of several packets of which it misses one.
        for verb in ("write", "write_with_imm"):
            rows += [{"transport": "UC", "verb": verb, "size": ONE_PACKET},
                     {"transport": "UC", "verb": verb, "requester": "server"}]
        report, _, found = self.check(rows, ", match: {kind: roce}, loss: 1%")
        self.assertGreater(self.lost(report), 0)
        self.assertEqual(len(found), 2 * len(rows) - 2)
        for row in found:
            if row["transport"] == "RC":
                self.assertEqual(row["whole"], MESSAGES, row)
            else:
                self.assertGreater(row["whole"], 0, row)
                self.assertEqual(row["whole"] + row["partial"] + row["missing"], MESSAGES, row)
            if row["size"] <= ONE_PACKET or row["verb"] != "write":
                self.assertEqual(row["partial"], 0, row)
        self.nothing_is_malformed()

    def test_c_ucmatose_of_linux_meets_ours_both_ways(self):
        options = "connections: 3, message_count: 20, message_size: 3000"
        words = ("ucmatose", "-c", 3, "-C", 20, "-S", 3000)
        server = self.left.begin(*words)
        self.addCleanup(self.end_server, server)
        self.left.run("sh", "-c", "until rdma resource show cm_id | grep -q LISTEN; do sleep 0.2; done")
        process = self.nic(f"workloads:\n  ucmatose: {{hosts: [nic], address: {self.left.address}, {options}}}")
        self.ucmatose_agrees(self.nic_report(process, stop=False)[0], server)
        process = self.nic(f"workloads:\n  ucmatose: {{hosts: [nic], {options}}}")
        client = self.left.begin(*words, "-s", self.address)
        self.ucmatose_agrees(self.nic_report(process, stop=False)[0], client)

    def ucmatose_agrees(self, report, other):
        said = other.communicate(timeout=60)[0]
        self.assertIn("return status 0", said)
        ours = report["workloads"]["ucmatose"]["details"]
        self.assertEqual(ours["error"], "", said)
        self.assertEqual((ours["connections"], ours["disconnected"], ours["messages_sent"], ours["messages_received"]),
                         (3, 3, 60, 60))
        self.wire_is_clean(**{name: 3 for name in CONNECTION})
