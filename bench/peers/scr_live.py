#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Policies of emulated NICs on a live wire: two NICs in two namespaces, and between them a bump whose link has a rate and a delay. Rates
and round trips are judged as they were measured, so the machine must have nothing else to do. Needs root."""
import json
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "lab"))
import bed  # noqa: E402

HINTS = pathlib.Path(bed.ROCEBOX).parent / "rocebox-hints"
PORT = 200e6  # of the NICs
SECONDS = 5
# Of the wire: Ethernet, IP, UDP, BTH and ICRC of packets of 1024 bytes, preamble, FCS and gap.
PAYLOAD = 1024 / (1024 + 14 + 20 + 8 + 12 + 4 + 24)
TIMING = "timing: {trigger: 0, law: 0, install: 0, rtt_request: 0, rtt_response: 0}"


class Scr(bed.BedTest):
    def nic(self, space, address, control, workloads, idle="interrupt"):
        """Starts a NIC in a namespace; returns the process once packets flow, its configuration as `config`."""
        config = self.dir / f"{address}.yaml"
        config.write_text(f"devices:\n  nic:\n    nic:\n      address: {address}\n      rate: {PORT:.0f}bps\n      limiter: {{qp_burst: 64KiB, port_burst: 64KiB}}\n{control}"
                          f"workloads:\n{workloads}ports: {{nic.wire: {{af_packet: eth, rx_descriptors: 2048}}}}\nlive: {{idle: {idle}}}\n")
        process = self.child_within(space, bed.ROCEBOX, "run", str(config), "--name", f"{space}nic", "--json", "-")
        said = process.stderr.readline()
        self.assertIn(" port(s)", said, said + process.stderr.read() if process.poll() is not None else said)
        process.name, process.config = re.match(r"rocebox run (\S+): ", said).group(1), config
        return process

    def flows(self, count, control, link="{}", server_control="", seconds=SECONDS, size="64KiB", begun=None):
        """So many WRITEs at once over a bump with that link; the client's report, and Mbit/s of each flow."""
        bump = self.start("a <-> wan <-> z", f"kernels: {{wan: {{type: link, {link[1:-1]}}}}}")
        serves = self.nic(self.right, "10.99.0.12", server_control, "".join(
            f"  f{i}: {{type: write_bw, hosts: [nic], port: {18515 + i}, size: {size}, mtu: 1024}}\n" for i in range(count)))
        asks = self.nic(self.left, "10.99.0.11", control, "".join(
            f"  f{i}: {{type: write_bw, hosts: [nic], address: 10.99.0.12, port: {18515 + i}, size: {size}, mtu: 1024, tx_depth: 4, "
            f"duration: {seconds}s, timeout: 18}}\n" for i in range(count)))
        if begun:
            begun(asks)
        reports = []
        for process in (asks, serves):
            out, error = process.communicate(timeout=bed.HANGS)
            self.assertEqual(process.returncode, 0, error)
            reports.append(json.loads(out))
            bed.check_books(self, reports[-1])
        self.stop(bump)
        rates = [reports[0]["workloads"][f"f{i}"]["details"]["average_bits_per_second"] / 1e6 for i in range(count)]
        return reports[0]["devices"]["nic"]["kernels"]["nic"], rates

    def test_water_filling_shares_by_weights_from_a_mapped_file(self):
        """Weights 1, 2 and 3 of three flows that all want the port: a sixth, a third and half of it."""
        hints = self.dir / "nic.hints"
        subprocess.run([HINTS, hints, "17=1", "18=2", "19=3"], check=True)
        nic, rates = self.flows(3, f"""      congestion_control: scr_control
      scr_control:
        policy: fair
        {TIMING}
        hints_file: {hints}
        hints_period: 1ms
        parameters: [{{name: step, value: 4000000}}, {{name: start, value: 20000000}}, {{name: min_rate, value: 1000000}}, {{name: idle, value: 500000000}}, {{name: lag, value: 1000000}}, {{name: saturated, value: 900}}, {{name: window, value: 20000000}}]
""")
        counters = nic["counters"]
        self.assertEqual((counters["scr_hints_taken"], counters["scr_hints_torn"], counters["scr_stops"]), (3, 0, 0))
        whole = PORT / 1e6 * PAYLOAD
        for rate, share in zip(sorted(rates), (1 / 6, 1 / 3, 1 / 2)):
            self.assertAlmostEqual(rate / (whole * share), 1, delta=0.1, msg=f"{rates} of {whole:.1f} Mbit/s")

    def test_swift_shares_a_slow_link_between(self):
        """Two flows, a link of half the port's rate: half of the link each."""
        nic, rates = self.flows(2, f"""      congestion_control: scr_control
      scr_control:
        policy: swift
        {TIMING}
        probe_timeout: 500ms
        parameters: [{{name: base, value: 8000000}}, {{name: hops, value: 0}}, {{name: range, value: 8000000}}, {{name: min_rate, value: 20000000}}, {{name: max_rate, value: 100000000}}, {{name: increase, value: 1000000}}, {{name: floor, value: 2000000}}]
""", "{rate: 100Mbps, queue: 4MB, delay: 500us}")
        self.assertEqual(nic["counters"]["scr_stops"], 0)
        whole = 100 * PAYLOAD
        for rate in rates:
            self.assertAlmostEqual(rate / (whole / 2), 1, delta=0.1, msg=f"{rates} of {whole:.1f} Mbit/s: {nic['policy_counters']}")

    def test_an_agent_measures_the_delay_of_a_link(self):
        nic, _ = self.flows(1, f"""      congestion_control: scr_control
      scr_control: {{policy: probe, {TIMING}, probe_timeout: 500ms, parameters: [{{name: period, value: 5000000}}]}}
""", "{forward: {delay: 20ms}}", seconds=2, size="1KiB")
        told = nic["policy_counters"]
        self.assertGreater(told["answers"], 100)
        self.assertAlmostEqual(told["median_ns"] / 1e6, 20, delta=1, msg=str(told))

    def test_a_program_for_pcc_takes_parameters_while_it_runs(self):
        """rtt_control: under a target that no packet meets at its least rate; then with one that all meet at the port's."""
        sent = []

        def told(name):
            return self.ask(asks[0], "/rocebox/kernel", "nic.nic")["counters"][name]

        def bytes_in(seconds):
            before, begin = told("tx_roce_bytes"), time.monotonic()
            time.sleep(seconds)
            return (told("tx_roce_bytes") - before) * 8 / (time.monotonic() - begin) / 1e6

        asks = []

        def begun(process):
            asks.append(process)
            self.until(lambda: told("pcc_rtt_requests") > 20, "probes are sent")
            sent.append(bytes_in(1))
            text = process.config.read_text()
            process.config.write_text(text.replace("{id: 0, value: 1000}", "{id: 0, value: 1000000000}"))
            done = subprocess.run([bed.ROCEBOX, "reload", process.name], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("devices.nic.nic.pcc.parameters[0].value is now 1000000000, was 1000", done.stdout)
            time.sleep(0.5)
            sent.append(bytes_in(1))
            process.config.write_text(process.config.read_text().replace("rate: 200000000bps", "rate: 300000000bps"))
            done = subprocess.run([bed.ROCEBOX, "reload", process.name], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn("stays in force", done.stderr)

        least = 52429  # of 2^20: a twentieth of the port
        nic, _ = self.flows(1, "      congestion_control: pcc\n      pcc: {program: rtt_control, parameters: [{id: 0, value: 1000}, "
                            f"{{id: 1, value: 20000}}, {{id: 4, value: {least}}}, {{id: 6, value: 100000000}}]}}\n", seconds=4, begun=begun)
        self.assertEqual((nic["counters"]["pcc_stops"], nic["counters"]["pcc_parameters_refused"]), (0, 0))
        self.assertLess(sent[0], 15, sent)
        self.assertGreater(sent[1], 150, sent)

    def test_a_program_for_pcc_takes_parameters_while_a_capture_plays(self):
        """The same program, told of a capture that plays on and on; no flow of it keeps to the first target."""
        capture = bed.CAPTURES / "multi_qp.pcap"
        scr = "{pcc: {program: rtt_control, parameters: [{id: 0, value: 1000}, {id: 1, value: 20000}]}, rate: 100Gbps}"
        rates = []
        for target in (1000, 1000000000):
            run = self.start_with(f"  a: {{pcap: {{in: {capture}, pace: as_captured, loop: 100000}}}}\n  z: {{af_packet: {self.right_end}}}\n",
                                  f"bump: {{path: a <-> scr <-> z, kernels: {{scr: {scr}}}}}")
            self.more_packets(run, "bump.a", 2000)
            if target != 1000:
                config = self.dir / "run.yaml"
                config.write_text(config.read_text().replace("{id: 0, value: 1000}", f"{{id: 0, value: {target}}}"))
                done = subprocess.run([bed.ROCEBOX, "reload", run.name], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"pcc.parameters[0].value is now {target}, was 1000", done.stdout)
            self.more_packets(run, "bump.a", 4000)
            report = self.stop(run)["devices"]["bump"]["kernels"]["scr"]
            self.assertEqual((report["counters"]["pcc_stops"], report["counters"]["pcc_parameters_refused"]), (0, 0))
            self.assertEqual(report["pcc_parameters"][0]["value"], target)
            rates.append([row["policy_bits_per_second"] for row in report["scr_flows"]])
        self.assertEqual([len(one) for one in rates], [8, 8])
        self.assertLess(max(rates[0]), 1e9, rates)
        self.assertGreater(min(rates[1]), 10e9, rates)


if __name__ == "__main__":
    bed.main()
