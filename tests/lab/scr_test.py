#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Policies of Software-Controlled RDMA on a live wire: a NIC in each of two namespaces, and between them a bump with a link, behind
which the kernel `scr` reports what each flow got, by one clock and in the same intervals.

The machine may be busy: rates are low, processes sleep while nothing is to be done and have precedence, they end when a signal says so,
and flows are compared with flows of the same five seconds. What is measured out of bounds is measured again, twice at most: the tests
take half a minute then, and a quarter of one else."""
import json
import pathlib
import re
import subprocess

import bed

HINTS = pathlib.Path(bed.ROCEBOX).parent / "rocebox-hints"
INTERVAL = 250_000_000  # ns
SECONDS = 5
TRIES = 3
TIMING = "timing: {trigger: 0, law: 0, install: 0, rtt_request: 0, rtt_response: 0}"


def max_min(demands, weights, capacity):
    """Weighted max-min: who wants less than his part of what is left has that; the others share the rest."""
    shares, left = {}, dict(enumerate(demands))
    while left:
        room = capacity - sum(shares.values())
        level = {i: room * weights[i] / sum(weights[j] for j in left) for i in left}
        content = [i for i in left if left[i] <= level[i]]
        shares.update({i: left.pop(i) for i in content} if content else {i: level[i] for i in left})
        if not content:
            break
    return [shares[i] for i in range(len(demands))]


class Scr(bed.BedTest):
    def child(self, *words, **more):
        """Before whatever else the machine does; they sleep most of the time."""
        return super().child("nice", "-n", "-15", *words, **more)

    def nic(self, space, address, control, workloads):
        config = self.dir / f"{address}.yaml"
        bursts = ("qp_burst: 16KiB, " if "congestion_control:" in control else "") + "port_burst: 16KiB"
        config.write_text(f"devices:\n  nic:\n    nic:\n      address: {address}\n      mtu: 1500\n      limiter: {{{bursts}}}\n{control}"
                          f"workloads:\n{workloads}ports: {{nic.wire: {{af_packet: eth, rx_descriptors: 2048}}}}\nlive: {{idle: interrupt}}\n")
        process = self.child_within(space, bed.ROCEBOX, "run", str(config), "--name", f"{space}nic", "--json", "-")
        said = process.stderr.readline()
        self.assertIn(" port(s)", said, said + process.stderr.read() if process.poll() is not None else said)
        process.name = re.match(r"rocebox run (\S+): ", said).group(1)
        return process

    def begin(self, flows, control, link, far=""):
        """One WRITE after the other in each of the flows, whose options these are; the bump and both NICs. `far`: more of the second one's."""
        ports = "".join(f"  {port}: {{af_packet: {end}, rx_descriptors: 2048}}\n" for port, end in (("a", self.left_end), ("z", self.right_end)))
        kernels = f"{{wan: {{type: link, {link}}}, scr: {{interval: {INTERVAL}ns, samples: 1024}}}}"
        bump = self.start_with(ports, f"bump: {{path: a <-> wan <-> scr <-> z, kernels: {kernels}}}", more="live: {idle: interrupt}\n")
        common = {"type": "write_bw", "hosts": "[nic]", "size": "64KiB", "mtu": 1024, "tx_depth": 8, "timeout": 20}

        def workloads(**more):
            rows = [{**common, **one, "port": 18515 + i, **more} for i, one in enumerate(flows)]
            return "".join(f"  f{i}: {{{', '.join(f'{key}: {value}' for key, value in row.items())}}}\n" for i, row in enumerate(rows))
        serves = self.nic(self.right, "10.99.0.12", "      rate: 1Gbps\n" + far, workloads())
        asks = self.nic(self.left, "10.99.0.11", control, workloads(address="10.99.0.12", duration="3600s"))
        return bump, asks, serves

    def end(self, *processes):
        """Reports of processes whose flows go on and on."""
        reports = []
        for process in processes:
            process.send_signal(bed.signal.SIGINT)
            out, error = process.communicate(timeout=bed.HANGS)
            self.assertEqual(process.returncode, 0, error)
            reports.append(json.loads(out))
        return reports

    def counters(self, run, kernel="nic.nic"):
        return self.ask(run, "/rocebox/kernel", kernel)["counters"]

    def passes(self, bump, seconds):
        """Returns when so much time has passed for the bump."""
        begin = self.ask(bump, "/rocebox/run")["elapsed_ns"]
        self.until(lambda: self.ask(bump, "/rocebox/run")["elapsed_ns"] > begin + seconds * 10**9, "time passes")

    def series(self, report):
        """What the bump saw of each flow, in the order of their queue pairs: bits per second on the wire, by when an interval began."""
        rows = [row for row in report["devices"]["bump"]["kernels"]["scr"]["scr_rates"] if row["source"] == "10.99.0.11"]
        return [{row["at_ns"]: row["seen_bits_per_second"] for row in rows if row["qpn"] == number}
                for number in sorted({row["qpn"] for row in rows})]

    def mean(self, rates, end, seconds):
        """Of one flow, over whole intervals before `end`; in those that are missing nothing came."""
        count = int(seconds * 1e9 / INTERVAL)
        return sum(rates.get(end - INTERVAL * i, 0) for i in range(1, count + 1)) / count

    def seen(self, flows, control, link, ready, warm_up):
        """Bits per second of each flow over the same five seconds, which end with the last interval in which all of them sent, and what the
        client's NIC counted. `warm_up`: seconds from when it is `ready`."""
        bump, asks, serves = self.begin(flows, control, link)
        self.until(lambda: ready(self.counters(asks)), "flows are ready")
        self.passes(bump, warm_up + SECONDS)
        shows, nic, _ = self.end(bump, asks, serves)
        series = self.series(shows)
        self.assertEqual(len(series), len(flows))
        end = min(max(rates) for rates in series)
        return [self.mean(rates, end, SECONDS) for rates in series], nic["devices"]["nic"]["kernels"]["nic"]

    def check_shares(self, measure, weights, capacity):
        """Each flow within a tenth of its max-min share of all there is."""
        for _ in range(TRIES):
            rates, nic = measure()
            self.assertEqual(nic["counters"]["scr_stops"], 0)
            shares = max_min([float("inf")] * len(rates), weights, capacity)
            said = f"{[f'{rate / 1e6:.2f}' for rate in rates]} Mbit/s of {capacity / 1e6:g}: {nic['policy_counters']}"
            if all(abs(rate / share - 1) < 0.1 for rate, share in zip(rates, shares)):
                return
        self.fail(said)

    def test_water_filling_shares_by_weights_from_a_mapped_file(self):
        """Weights 1, 2 and 3 of three flows that all want the port: a sixth, a third and half of it."""
        hints, port = self.dir / "nic.hints", 60e6
        subprocess.run([HINTS, hints, "17=1", "18=2", "19=3"], check=True)
        control = f"""      rate: {port:.0f}bps
      congestion_control: scr_control
      scr_control:
        policy: fair
        {TIMING}
        hints_file: {hints}
        hints_period: 10ms
        parameters:
        - {{name: step, value: 1000000}}
        - {{name: start, value: 5000000}}
        - {{name: min_rate, value: 1000000}}
        - {{name: capacity, value: 950}}
        - {{name: saturated, value: 850}}
        - {{name: window, value: 100000000}}
        - {{name: idle, value: 5000000000}}
        - {{name: lag, value: 1000000}}
"""

        def measure():
            rates, nic = self.seen([{}] * 3, control, "delay: 1ms", lambda counters: counters["scr_hints_taken"] == 3 and counters["tx_roce_bytes"] > 10**5, 0.5)
            self.assertEqual(nic["counters"]["scr_hints_torn"], 0)
            return rates, nic
        self.check_shares(measure, (1, 2, 3), 0.95 * port)

    def test_swift_shares_a_slow_link_between(self):
        """Two flows, and a link of two fifths of their port: half of the link each."""
        link = 40e6
        control = f"""      rate: 100Mbps
      congestion_control: scr_control
      scr_control:
        policy: swift
        {TIMING}
        probe_timeout: 1s
        parameters:
        - {{name: base, value: 80000000}}
        - {{name: hops, value: 0}}
        - {{name: range, value: 20000000}}
        - {{name: min_rate, value: 5000000}}
        - {{name: max_rate, value: 40000000}}
        - {{name: increase, value: 400000}}
        - {{name: beta, value: 250}}
        - {{name: most_cut, value: 200}}
        - {{name: floor, value: 2000000}}
"""
        self.check_shares(lambda: self.seen([{}] * 2, control, f"rate: {link:.0f}bps, queue: 4MB, delay: 25ms",
                                            lambda counters: counters["rtt_responses_received"] > 4, 2), (1, 1), link)

    def test_an_agent_measures_the_delay_of_a_link(self):
        """20 ms there and none back, less the time at the peer: so the fastest of its probes, and the median nearer to that than to twice it,
        however long processes wait for a core."""
        control = f"""      rate: 20Mbps
      congestion_control: scr_control
      scr_control: {{policy: probe, {TIMING}, probe_timeout: 1s, parameters: [{{name: period, value: 10000000}}]}}
"""
        bump, asks, serves = self.begin([{"size": "1KiB", "tx_depth": 1}], control, "forward: {delay: 20ms}")
        self.until(lambda: self.counters(asks)["rtt_responses_received"] >= 120, "probes are answered")
        _, nic, _ = self.end(bump, asks, serves)
        told = nic["devices"]["nic"]["kernels"]["nic"]["policy_counters"]
        self.assertGreaterEqual(told["least_ns"], 20e6 - 100e3, told)
        self.assertLess(told["least_ns"], 21e6, told)
        self.assertLess(told["median_ns"], 30e6, told)

    def reload(self, process, config, before, after):
        text = config.read_text()
        self.assertIn(before, text)
        config.write_text(text.replace(before, after))
        return subprocess.run([bed.ROCEBOX, "reload", process.name], capture_output=True, text=True, timeout=bed.HANGS)

    def test_a_program_for_pcc_takes_parameters_while_it_runs(self):
        """rtt_control: under a target that no packet meets at its least rate, a twentieth of the port; then with one that all meet at the port's.
        What it is told are answers of a notification point at the other end, which gets a message of its host meanwhile."""
        port = 40e6
        far = "      congestion_control: pcc\n      pcc: {notification_point: {program: load_np, mailbox: []}}\n"
        control = f"""      rate: {port:.0f}bps
      congestion_control: pcc
      pcc: {{program: rtt_control, parameters: [{{id: 0, value: 1000}}, {{id: 1, value: 20000}}, {{id: 4, value: 52429}}, {{id: 6, value: 1000000000}}]}}
"""
        bump, asks, serves = self.begin([{"size": "16KiB"}], control, "delay: 1ms", far)
        self.until(lambda: self.counters(asks)["pcc_rtt_requests"] > 20, "probes are sent")
        self.passes(bump, 1.3)
        config = self.dir / "10.99.0.11.yaml"
        done = self.reload(asks, config, "{id: 0, value: 1000}", "{id: 0, value: 1000000000}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("devices.nic.nic.pcc.parameters[0].value is now 1000000000, was 1000", done.stdout)
        done = self.reload(asks, config, f"rate: {port:.0f}bps", "rate: 300Mbps")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("stays in force", done.stderr)
        done = self.reload(serves, self.dir / "10.99.0.12.yaml", "mailbox: []", "mailbox: [64 00 00 00, 64 00]")  # 100 Mbit/s, and half of a number
        self.assertEqual(done.returncode, 0, done.stderr)
        self.passes(bump, 1.6)
        shows, report, answers = self.end(bump, asks, serves)
        nic, [rates] = report["devices"]["nic"]["kernels"]["nic"], self.series(shows)
        self.assertEqual((nic["counters"]["pcc_stops"], nic["counters"]["pcc_parameters_refused"]), (0, 0))
        self.assertEqual(nic["pcc_parameters"][0]["value"], 1000000000)
        there = answers["devices"]["nic"]["kernels"]["nic"]
        self.assertEqual((there["counters"]["pcc_np_stops"], there["counters"]["pcc_mails_refused"]), (0, 1))
        self.assertGreaterEqual(there["counters"]["pcc_np_answers"], nic["counters"]["rtt_responses_received"])
        self.assertEqual([row["is_taken"] for row in there["notification_point"]["pcc_mailbox"]], [True, False])
        seconds = [self.mean(rates, end, 1) for end in sorted(rates)[4:]]
        self.assertLess(min(seconds), 0.15 * port, seconds)
        self.assertGreater(seconds[-1], 0.7 * port, seconds)

    def test_a_program_for_pcc_takes_parameters_while_a_capture_plays(self):
        """The same program, told of a capture that plays on and on: flows begin at the least rate and rise by the least steps; then that least
        rate is the port's. So nothing depends on the round trips, which are those of a busy machine."""
        capture, least, most = bed.CAPTURES / "multi_qp.pcap", 64, 1 << 20
        scr = f"{{pcc: {{program: rtt_control, parameters: [{{id: 1, value: 1}}, {{id: 4, value: {least}}}, {{id: 5, value: {least}}}]}}, rate: 100Gbps}}"
        rates = []
        for changed in (False, True):
            run = self.start_with(f"  a: {{pcap: {{in: {capture}, pace: as_captured, loop: 100000}}}}\n  z: {{af_packet: {self.right_end}}}\n",
                                  f"bump: {{path: a <-> scr <-> z, kernels: {{scr: {scr}}}}}")
            self.more_packets(run, "bump.a", 400)
            if changed:
                done = self.reload(run, self.dir / "run.yaml", f"{{id: 4, value: {least}}}", f"{{id: 4, value: {most}}}")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"pcc.parameters[1].value is now {most}, was {least}", done.stdout)
            self.more_packets(run, "bump.a", 1600)
            report = self.stop(run)["devices"]["bump"]["kernels"]["scr"]
            self.assertEqual((report["counters"]["pcc_stops"], report["counters"]["pcc_parameters_refused"]), (0, 0))
            self.assertEqual(report["pcc_parameters"][4]["value"], most if changed else least)
            rates.append([row["policy_bits_per_second"] for row in report["scr_flows"]])
        self.assertEqual([len(one) for one in rates], [8, 8])
        self.assertLess(max(rates[0]), 50e9, rates)
        self.assertEqual(min(rates[1]), 100e9, rates)


if __name__ == "__main__":
    bed.main()
