# SPDX-License-Identifier: BSD-3-Clause
"""A device of kind `nic` in front of a machine with Linux's Soft-RoCE: neighbours, ping, and connections by RDMA CM both
ways, with rdmacm-utils' own programs at the other end. Mixed into a test that has the machines."""
import json
import re
import signal
import subprocess

import bed

PINGS, PING_BYTES = 20, 5000
DISSECTOR = bed.ROOT / "configs" / "wireshark" / "rocebox.lua"
MAC = "02:00:00:77:00:09"
DELAYED = "/sys/class/infiniband/rxe0/ports/1/cm_tx_msgs/mra"  # how often Linux has said so
CM_ATTRIBUTES = {0x10: "REQ", 0x11: "MRA", 0x12: "REJ", 0x13: "REP", 0x14: "RTU", 0x15: "DREQ", 0x16: "DREP"}


class NicCases:
    address, address6 = "10.77.0.9", "fd77::9"

    def nic(self, workloads="", link="", options=""):
        """Starts a NIC with these options in front of the left machine, and `inspect` between them; a workload is what runs on its
        host, `link` are the faults between the NIC and `inspect`."""
        self.trace = self.folder / f"{self.id()}.pcapng"
        config = self.folder / "nic.yaml"
        config.write_text(f"""
devices:
  nic:
    nic: {{address: {self.address}, address6: '{self.address6}', mac: '{MAC}'{options}}}
  tap:
    path: host <-> inspect <-> wire
links:
  cable: {{between: [nic.wire, tap.host]{link}}}
{workloads}
ports:
  tap.wire: {{af_packet: {self.left.tap}, rx_descriptors: 4096}}
live: {{idle: interrupt}}
""")
        process = subprocess.Popen([bed.ROCEBOX, "run", config, "--json", "-", "--trace", "all", "--trace-out", self.trace],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        said = process.stderr.readline()
        while said and "port(s)" not in said and process.poll() is None:  # a client's first packets may be traced before
            said = process.stderr.readline()
        self.assertIn("1 port(s)", said, said + process.stderr.read() if process.poll() is not None else said)
        return process

    def nic_report(self, process, stop=True, failed=()):
        """The report and the counters of the NIC, once a signal has ended the run, or without one its workloads, of which these
        tell of an error. What `inspect` saw on the wire and the NIC's own counts agree."""
        if stop:
            process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1 if failed else 0, error)
        report = json.loads(out)
        self.assertEqual(re.findall(r"workload `(\w+)` failed: ", error), list(failed))
        self.assertEqual(report["run"]["pool_in_use"], report["run"]["pool_idle"], "every packet is back")
        counters = report["devices"]["nic"]["kernels"]["nic"]["counters"]
        lost = self.lost(report)
        # Messages of RDMA CM that come again may find nothing any more.
        for name in ("rx_icrc_encapsulated", "drop_malformed", "drop_mad", "tx_no_packet",
                     *(() if lost else ("drop_cm_unknown", "drop_cm_state"))):
            self.assertEqual(counters[name], 0, name)
        wire = report["devices"]["tap"]["kernels"]["inspect"]
        self.assertEqual((wire["counters"]["rx_icrc_encapsulated"], wire["counters"]["icrc_unverified"]), (0, 0))
        seen = {direction: sum(f["packets"] for f in wire["flows"] if (f["source"] in (self.address, self.address6)) == ours)
                for direction, ours in (("tx", True), ("rx", False))}
        cable = report["links"]["cable"]["counters"]
        self.assertEqual(seen, {"tx": counters["tx_roce_packets"] - cable["forward_drop_loss"],
                                "rx": counters["rx_roce_packets"] + cable["reverse_drop_loss"]})
        if not lost:
            own = [f for f in wire["flows"] if f["source"] in (self.address, self.address6)]
            again = sum(f.get("requests", {}).get(name, 0) for f in own
                        for name in ("retransmissions", "duplicates", "out_of_order", "undecided", "beyond_window"))
            self.assertEqual((sum(f["acks"] for f in own), sum(sum(f["naks"].values()) for f in own), again),
                             tuple(counters[name] for name in ("acks_sent", "naks_sent", "retransmitted_packets")))
        return report, counters

    def test_6_nic_is_a_neighbour_that_answers_pings(self):
        process = self.nic()
        for address in (self.address, self.address6):
            self.assertIn(" 0% packet loss", self.left.run("ping", "-c", "3", "-s", "1000", address))
        self.assertIn(MAC, self.left.run("ip", "neigh", "show", self.address))
        _, counters = self.nic_report(process)
        self.assertEqual(counters["echo_replies_sent"], 6)
        self.assertGreaterEqual(counters["arp_replies_sent"], 1)
        self.assertGreaterEqual(counters["nd_advertisements_sent"], 1)

    def rping(self, *words):
        """What Linux's client said. It ends in pthread_exit(), which may abort in the small machine: every ping is counted
        instead, and the client itself has compared each (-V)."""
        done = subprocess.run(self.left.command(["rping", "-c", "-S", PING_BYTES, "-V", "-v", *words]), capture_output=True,
                              text=True)
        said = done.stdout + done.stderr
        if done.returncode != 0:
            self.assertIn("libgcc_s.so.1 must be installed for pthread_exit to work", said)
        self.assertNotIn("mismatch", said)
        return said

    def test_7_rping_clients_of_linux_meet_our_server(self):
        process = self.nic(f"workloads:\n  rping: {{hosts: [nic], size: {PING_BYTES}, persistent: true}}")
        for address in (self.address, self.address6):
            said = self.rping("-C", PINGS, "-a", address)
            self.assertEqual(said.count("ping data: rdma-ping-"), PINGS, said)
        refused = subprocess.run(self.left.command(["rping", "-c", "-a", self.address, "-p", 7175]), capture_output=True,
                                 text=True)
        self.assertIn("REJECTED", refused.stdout + refused.stderr)
        report, counters = self.nic_report(process)
        server = report["workloads"]["rping"]["details"]
        self.assertEqual((server["connections"], server["pings"], server["error"]), (2, 2 * PINGS, ""))
        self.assertEqual((counters["cm_connections"], counters["cm_rejects_sent"]), (2, 1))
        self.assertEqual(counters["retransmitted_packets"], 0)
        self.wire_is_clean(REQ=3, REP=2, RTU=2, REJ=1, DREQ=2, DREP=2)

    def test_8_our_rping_client_meets_the_server_of_linux(self):
        server = self.left.begin("rping", "-s", "-C", PINGS, "-S", PING_BYTES, "-V", "-v")
        self.left.run("sh", "-c", "until rdma resource show cm_id | grep -q LISTEN; do sleep 0.2; done")
        delayed = self.left.run("cat", DELAYED).strip()
        # Who listens and does not look at what comes: Linux says so when it is asked again (MRA). At another port nobody does.
        self.left.run("killall", "-STOP", "rping")
        process = self.nic(f"workloads:\n  rping: {{hosts: [nic], address: {self.left.address}, count: {PINGS}, "
                           f"size: {PING_BYTES}}}\n  nobody: {{type: rping, hosts: [nic], address: {self.left.address}, port: 7175}}",
                           options=", cm_response_timeout: 19")
        self.left.run("sh", "-c", f"until grep -qv '^{delayed}$' {DELAYED}; do sleep 0.2; done; killall -CONT rping")
        report, counters = self.nic_report(process, stop=False, failed=["nobody"])
        said = server.communicate(timeout=60)[0]
        self.assertEqual(report["workloads"]["nobody"]["details"]["error"], "the server rejects: invalid service ID (8)")
        client = report["workloads"]["rping"]["details"]
        self.assertEqual((client["pings"], client["mismatches"], client["error"]), (PINGS, 0, ""))
        self.assertEqual(said.count("server ping data: rdma-ping-"), PINGS, said)
        self.assertEqual(counters["rx_read_requests"], PINGS)
        self.assertEqual(counters["rx_write_requests"], PINGS)
        again = counters["cm_retries"]
        self.assertGreater(again, 0)
        self.wire_is_clean(REQ=2 + again, MRA=again, REJ=1, REP=1, RTU=1, DREQ=1, DREP=1)

    def test_9_rping_meets_our_server_through_loss(self):
        process = self.nic(f"workloads:\n  rping: {{hosts: [nic], size: {PING_BYTES}, persistent: true}}",
                           link=", match: {kind: data}, loss: 2%")
        said = self.rping("-C", 2 * PINGS, "-a", self.address)
        self.assertEqual(said.count("ping data: rdma-ping-"), 2 * PINGS, said)
        report, _ = self.nic_report(process)
        server = report["workloads"]["rping"]["details"]
        self.assertEqual((server["connections"], server["pings"], server["error"]), (1, 2 * PINGS, ""))
        self.assertGreater(self.lost(report), 0)
        self.nothing_is_malformed()

    @staticmethod
    def lost(report):
        return sum(report["links"]["cable"]["counters"][f"{way}_drop_loss"] for way in ("forward", "reverse"))

    def wire_is_clean(self, **messages):
        """tshark finds nothing malformed in what crossed the wire, and the connection managers said so much."""
        self.nothing_is_malformed()
        said = {}
        for attribute in self.tshark("infiniband.mad.attributeid", "infiniband.mad.attributeid"):
            name = CM_ATTRIBUTES[int(attribute, 0)]
            said[name] = said.get(name, 0) + 1
        self.assertEqual(said, messages)

    def icrcs(self):
        """What the project's Wireshark dissector has recalculated, of each packet: "1", where it is right."""
        only = 'frame.interface_name == "tap" && frame.comment contains " leave " && rocebox.icrc.status'
        return bed.sh("tshark", "-X", f"lua_script:{DISSECTOR}", "-r", self.trace, "-Y", only, "-T", "fields", "-e",
                      "rocebox.icrc.status").split()

    def nothing_is_malformed(self):
        self.assertEqual(set(self.icrcs()), {"1"})
        complaints = self.tshark("_ws.malformed || _ws.expert.severity == error", "_ws.expert.message")
        # RoCEv2 leaves UDP's checksum zero over IPv6, too (annex A17.3.2), which Linux does as we do.
        self.assertEqual([text for text in complaints if not text.endswith("Illegal checksum value (0)")], [])

    def tshark(self, what, field):
        """A field of such packets, each once: the trace has them at every stage, and all leave `inspect`'s device."""
        only = f'frame.interface_name == "tap" && frame.comment contains " leave " && ({what})'
        # Wireshark takes SENDs for NFS's where they look like it; none here are.
        return bed.sh("tshark", "--disable-protocol", "rpcordma", "-r", self.trace, "-Y", only, "-T", "fields", "-e",
                      field).splitlines()
