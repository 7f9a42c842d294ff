#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What happens to ports while a bump runs: links that go down, pools that run dry, tags, jumbo frames, many ports."""
import re
import struct
import time

import bed
from wire_tool import read_pcap


def mac(number):
    return bytes([2, 0, 0, 0, 0, number])


def tagged(tags, size, number=0):
    """An IPv4 frame behind VLAN tags, given as (type, tag)."""
    ip = bytes.fromhex("4500") + struct.pack(">H", size) + bytes.fromhex("0000000040fd0000") + bytes([10, 99, 9, 1, 10, 99, 9, 2])
    frame = mac(2) + mac(1) + b"".join(struct.pack(">HH", kind, tag) for kind, tag in tags) + b"\x08\x00" + ip
    return frame + bytes((number + n) % 256 for n in range(size - len(ip)))


class Bump(bed.BedTest):
    def ping(self, count=3):
        self.within(self.left, "ping", "-c", str(count), "-i", "0.1", "-W", "2", "10.99.0.2")

    def no_ping(self):
        done = bed.subprocess.run(["ip", "netns", "exec", self.left, "ping", "-c", "2", "-i", "0.2", "-W", "1", "10.99.0.2"],
                                  capture_output=True)
        self.assertNotEqual(done.returncode, 0)

    def until_ping(self):
        """Until the other side answers again; neighbours may first have to be found anew."""
        for _ in range(20):
            if bed.subprocess.run(["ip", "netns", "exec", self.left, "ping", "-c", "1", "-W", "1", "10.99.0.2"],
                                  capture_output=True).returncode == 0:
                return
        self.fail("no answer")

    def pass_frames(self, frames, ports=None, **more):
        """Sends frames from the left, as they are; returns those that arrive on the right from the same address."""
        sent, arrived = self.dir / "sent.pcap", self.dir / "arrived.pcap"
        sent.write_bytes(struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1) +
                         b"".join(struct.pack("=IIII", 0, 0, len(f), len(f)) + f for f in frames))
        run = self.start_with(ports, **more) if ports else self.start()
        receiver = self.receiver(self.right, arrived)
        self.within(self.left, bed.PYTHON, str(bed.HERE / "wire_tool.py"), "send", "eth", str(sent))
        self.settle(run)
        report = self.stop(run)
        self.finish(receiver)
        source = frames[0][6:12]
        return [frame for _, _, frame in read_pcap(arrived)[0] if frame[6:12] == source], report

    def transfer(self, address="10.99.0.2", amount="10M"):
        server = self.iperf_server(self.right)
        self.assertIn("iperf Done", self.within(self.left, "iperf3", "-c", address, "-n", amount))
        server.wait(bed.HANGS)


class Operation(Bump):
    def test_a_port_that_goes_down_and_comes_back_continues(self):
        for idle in ("pause", "interrupt"):
            with self.subTest(idle):
                run = self.start_with(f"  a: {{af_packet: {self.left_end}}}\n  z: {{af_packet: {self.right_end}}}\n",
                                      more=f"live: {{idle: {idle}}}\n")
                self.ping()
                bed.sh("ip", "link", "set", self.right_end, "down")
                self.no_ping()
                bed.sh("ip", "link", "set", self.right_end, "up")
                self.until_ping()
                self.within(self.right, "ip", "link", "set", "eth", "down")
                self.no_ping()
                self.within(self.right, "ip", "link", "set", "eth", "up")
                self.until_ping()
                report = self.stop(run)
                self.assertEqual([port["link"] for port in report["ports"]], ["up", "up"])

    def test_an_interface_that_is_deleted_leaves_the_run_alive(self):
        for idle in ("pause", "interrupt"):
            with self.subTest(idle):
                run = self.start_with(f"  a: {{af_packet: {self.left_end}}}\n  z: {{af_packet: {self.right_end}}}\n",
                                      more=f"live: {{idle: {idle}}}\n")
                self.until_ping()
                bed.sh("ip", "link", "del", self.right_end)
                self.no_ping()
                self.assertIsNone(run.poll())
                used, begin = cpu_seconds(run.pid), time.monotonic()
                time.sleep(1)
                self.assertLess(cpu_seconds(run.pid) - used, 0.7 * (time.monotonic() - begin), "it does not spin at the dead socket")
                report = self.stop(run)
                self.assertEqual([port["link"] for port in report["ports"]], ["up", "gone"])
                self.assertGreater(report["ports"][1]["tx_errors"] + report["ports"][1]["tx_full"], 0)
            self.join_host(2)
            self.within(self.left, "ip", "neighbour", "flush", "all")

    def test_the_report_tells_a_port_without_carrier(self):
        run = self.start()
        self.within(self.right, "ip", "link", "set", "eth", "down")
        self.assertEqual([port["link"] for port in self.stop(run)["ports"]], ["up", "down"])

    def test_a_pool_that_runs_dry_sheds_load_and_recovers(self):
        run = self.start_with(f"  a: {{af_packet: {self.left_end}}}\n  z: {{af_packet: {self.right_end}}}\n",
                              "bump: {path: a <-> link <-> z, kernels: {link: {delay: 300ms}}}",
                              pool="small: 1024, large: 16, giant: 2")
        # Within 300 ms more arrive than there are packets to hold them.
        self.within(self.left, bed.PYTHON, "-c", "import socket\n"
                    "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                    "for n in range(20000): s.sendto(b'x' * 100, ('10.99.0.2', 5000))\n")
        self.settle(run)
        self.within(self.left, "ping", "-c", "3", "-i", "0.2", "-W", "3", "10.99.0.2")
        report = self.stop(run)
        self.assertGreater(report["ports"][0]["rx_no_packet"], 0)

    def test_vlan_tags_and_qinq_pass_byte_identical(self):
        frames = []
        for number, tags in enumerate(([(0x8100, 5)], [(0x8100, 0xE000)], [(0x8100, 0)], [(0x88A8, 100), (0x8100, 5)],
                                       [(0x8100, 7), (0x8100, 8)], [(0x88A8, 1), (0x88A8, 2), (0x8100, 3)], [])):
            frames += [tagged(tags, 60 + number, number), tagged(tags, 1400, number)]
        arrived, report = self.pass_frames(frames)
        self.assertEqual([frame.hex() for frame in arrived], [frame.hex() for frame in frames])
        self.assertEqual(sum(port["tx_errors"] for port in report["ports"]), 0)

    def test_a_vlan_of_the_hosts_works_with_checksum_offload(self):
        for number, space in enumerate((self.left, self.right), 1):
            try:
                self.within(space, "ip", "link", "add", "link", "eth", "name", "eth.5", "type", "vlan", "id", "5")
            except bed.subprocess.CalledProcessError as error:
                self.skipTest("this kernel has no VLAN interfaces: " + error.stderr.strip())
            self.within(space, "ip", "address", "add", f"10.98.0.{number}/24", "dev", "eth.5")
            self.within(space, "ip", "link", "set", "eth.5", "up")
        run = self.start("a <-> inspect <-> z")
        self.within(self.left, "ping", "-c", "3", "-i", "0.1", "-s", "1472", "10.98.0.2")
        self.transfer("10.98.0.2")
        self.stop(run)

    def test_an_unfinished_checksum_stays_in_its_place_behind_a_tag(self):
        # A UDP datagram behind a VLAN tag whose sum a host left to hardware: NEEDS_CSUM, from byte 38 on, into byte 44.
        frame = bytearray(tagged([(0x8100, 5)], 120))
        frame[18 + 9] = 17
        frame[38:46] = struct.pack(">HHHH", 5000, 5001, 100, 0xBEEF)
        header = struct.pack("=BBHHHH", 1, 0, 0, 0, 38, 6)
        run = self.start()
        tool = ("import socket, sys\n"
                "s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))\n"
                "s.bind(('eth', 3)); s.setsockopt(263, 15, 1); s.settimeout(100)\n")
        receiver = self.child_within(self.right, bed.PYTHON, "-c", tool +
                                     "s.setsockopt(263, 8, 1); print('ready', flush=True)\n"
                                     "while True:\n"
                                     "    data, aux, _, _ = s.recvmsg(65536, 256)\n"
                                     "    if data[16:22] == bytes([2, 0, 0, 0, 0, 1]): break\n"
                                     "print(data.hex()); print(aux[0][2][16:18].hex())\n")
        self.assertEqual(receiver.stdout.readline(), "ready\n")
        self.within(self.left, bed.PYTHON, "-c", tool + f"s.send(bytes.fromhex('{(header + frame).hex()}'))")
        out, error = receiver.communicate(timeout=bed.HANGS)
        data, tag = out.split()
        data = bytes.fromhex(data)
        # This receiver, too, is told of the tag beside the frame.
        self.assertEqual(tag, struct.pack("=H", 5).hex(), error)
        self.assertEqual(struct.unpack("=BBHHHH", data[:10]), (1, 0, 0, 0, 34, 6))
        self.assertEqual(data[10:].hex(), (frame[:12] + frame[16:]).hex())
        self.stop(run)

    def test_promiscuous_or_not(self):
        mine = bytes.fromhex(bed.sh("cat", f"/sys/class/net/{self.left_end}/address").strip().replace(":", ""))
        frames = [to + mac(1) + b"\x88\xb5" + bytes(60) for to in (mac(9), mine, b"\xff" * 6)]
        ports = f"  a: {{af_packet: {self.left_end}, promiscuous: %s}}\n  z: {{af_packet: {self.right_end}}}\n"
        arrived, report = self.pass_frames(frames, ports % "true")
        self.assertEqual(arrived, frames)
        self.assertEqual(report["ports"][0]["rx_other_mac"], 0)
        arrived, report = self.pass_frames(frames, ports % "false")
        self.assertEqual(arrived, frames[1:])
        self.assertEqual(report["ports"][0]["rx_other_mac"], 1)

    def test_two_bumps_of_four_ports_on_two_shards(self):
        self.make_pair()
        run = self.start_with(f"  one.a: {{af_packet: {self.left_end}}}\n  one.z: {{af_packet: {self.right_end}}}\n"
                              f"  two.a: {{af_packet: {self.more_ends[0]}}}\n  two.z: {{af_packet: {self.more_ends[1]}}}\n",
                              "one: {path: a <-> inspect <-> z}, two: {path: a <-> z}", "--cores", "0,1")
        self.ping()
        self.within(self.left, "ping", "-c", "3", "-i", "0.1", "10.97.0.2")
        self.transfer()
        self.transfer("10.97.0.2")
        report = self.stop(run)
        self.assertEqual(report["run"]["shards"], 2)
        self.assertTrue(all(port["rx_packets"] > 100 for port in report["ports"]))

    def make_pair(self):
        """A second interface of each host, `more`, with 10.97.0.1 and .2."""
        self.more_ends = [end + "b" for end in (self.left_end, self.right_end)]
        for number, (space, end) in enumerate(zip((self.left, self.right), self.more_ends), 1):
            bed.sh("ip", "link", "add", end, "type", "veth", "peer", "name", "more", "netns", space)
            self.addCleanup(bed.subprocess.run, ["ip", "link", "del", end], capture_output=True)
            bed.sh("ip", "link", "set", end, "up")
            self.within(space, "ip", "link", "set", "more", "up")
            self.within(space, "ip", "address", "add", f"10.97.0.{number}/24", "dev", "more")
            self.within(space, "ethtool", "-K", "more", "tso", "off", "gso", "off")

    def test_a_port_that_is_bound_to_nothing_counts_what_leaves_there(self):
        config = self.dir / "run.yaml"
        config.write_text(f"devices: {{bump: {{path: a <-> z}}}}\nports: {{a: {{af_packet: {self.left_end}}}}}\n")
        run = self.child(bed.ROCEBOX, "run", str(config), "--json", "-")
        self.assertIn("port `bump.z` is bound to nothing", run.stderr.readline())
        self.assertIn("1 port(s)", run.stderr.readline())
        self.no_ping()
        report = self.stop(run)
        self.assertGreater(report["run"]["drop_unbound"], 0)
        self.assertEqual(report["run"]["drop_unbound"], report["ports"][0]["rx_packets"])


class Jumbo(Bump):
    mtu = 9000

    def test_jumbo_frames_pass(self):
        run = self.start("a <-> inspect <-> z")
        self.within(self.left, "ping", "-c", "3", "-i", "0.1", "-M", "do", "-s", "8972", "10.99.0.2")
        self.transfer(amount="30M")
        self.stop(run)

    def test_rdma_at_mtu_4096(self):
        roce = bed.roce_frames(bed.CAPTURES / "rc_read_mtu4096.pcap")
        self.assertGreater(max(map(len, roce)), 4096)
        sources = {frame[6:12] for frame in roce}
        for source in sources:
            part = [frame for frame in roce if frame[6:12] == source]
            arrived, _ = self.pass_frames(part)
            self.assertEqual(arrived, part)


def cpu_seconds(pid):
    fields = bed.pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / bed.os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    bed.main()
