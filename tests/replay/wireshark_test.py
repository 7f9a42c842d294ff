#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""configs/wireshark/rocebox.lua: ICRC verdicts and PSN distances against Python, its registry, its install."""
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import make_derived
import wire
from common import CAPTURES, HERE, ROCEBOX, RoceboxTest, finish

LUA = HERE.parent.parent / "configs/wireshark"
KERNEL = HERE / "wireshark_kernel.lua"
BAD, GOOD, UNVERIFIABLE = "0", "1", "2"
ANSWERS = {0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12}  # RC: READ responses, ACK, ATOMIC ACK
FIELDS = ("frame.number", "rocebox.icrc.status", "rocebox.psn_distance", "rocebox.previous_frame", "rocebox.flow",
          "rocebox.icrc.calculated", "_ws.lua.text")


def without_lua():
    """Why tshark cannot run scripts here, or None. Root may be refused: init.lua says."""
    if not shutil.which("tshark"):
        return "tshark is not installed"
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as probe:  # rocebox.lua's own mistakes are no reason to skip
        probe.write('print("Lua runs")\n')
        probe.flush()
        done = subprocess.run(["tshark", "-X", f"lua_script:{probe.name}", "-r", CAPTURES / "ud_send.pcap"],
                              capture_output=True, text=True)
    if "Lua runs" in done.stdout:
        return None
    return ("tshark runs no Lua scripts here: built without Lua, or /etc/wireshark/init.lua has enable_lua = false, or,"
            " as root, run_user_scripts_when_superuser = false")


def expected(records):
    """(status, distance, previous frame, flow) of every packet of a capture, each as tshark writes it."""
    result, last = [], {}
    for number, (_, _, frame) in enumerate(records, 1):
        packet = wire.parse(frame)
        if packet is None:
            result.append(("", "", "", ""))
            continue
        status = {True: GOOD, False: BAD, None: UNVERIFIABLE}[packet["icrc_ok"]]
        distance = previous = ""
        if packet["service"] != 4 and packet["op"] <= 0x17:
            key = (packet["src"], packet["dst"], packet["qpn"], packet["service"], packet.get("src_qpn"),
                   packet["service"] == wire.RC and packet["op"] in ANSWERS)
            if key in last:
                before, previous = last[key]
                distance = (packet["psn"] - before) % 2**24
                distance = str(distance - 2**24 if distance >= 2**23 else distance)
            last[key] = packet["psn"], str(number)
        names = [wire.text_address(packet[side]) for side in ("src", "dst")]
        result.append((status, distance, previous, f"{names[0]} > {names[1]} qpn 0x{packet['qpn']:06x}"))
    return result


class Wireshark(RoceboxTest):
    def tshark(self, capture, *words, script=LUA / "rocebox.lua", silent=True):
        """Returns (stdout, stderr) of tshark with the script; Lua must not complain."""
        load = ["-X", f"lua_script:{script}"] if script else []
        done = subprocess.run(["tshark", "-n", *load, "-r", str(capture), *map(str, words)], capture_output=True,
                              text=True, errors="replace", env={**os.environ, "HOME": str(self.dir)})
        # Two passes make Wireshark 4.0's RPCoRDMA dissector complain of itself, with the script or without.
        known = re.compile(r"$|Running as user|.*protocol RPCoRDMA")
        errors = "\n".join(line for line in done.stderr.splitlines() if not known.match(line))
        if silent:
            self.assertEqual(errors, "", capture)
            self.assertNotIn("Lua Error", done.stdout, capture)
        self.assertIn(done.returncode, (0,) if silent else (0, 2), errors)  # 2: a torn file
        return done.stdout, errors

    def fields(self, capture, *words, fields=FIELDS, **more):
        """One list of values a packet; the columns are fields of FIELDS unless told."""
        names = [word for field in fields for word in ("-e", field)]
        text, _ = self.tshark(capture, "-T", "fields", "-E", "separator=|", *names, *words, **more)
        return [line.split("|") for line in text.splitlines()]

    def compare(self, path, *words):
        """The script's verdicts against the model's; returns the rows."""
        rows = self.fields(path, *words)
        self.assertEqual([tuple(row[1:5]) for row in rows], expected(wire.read_pcap(path)[0]), path)
        self.assertEqual({row[6] for row in rows} - {""}, set(), path)
        return rows

    def capture(self, frames, name="made.pcap"):
        path = self.dir / name
        path.write_bytes(make_derived.pcap([(n * 1000, 0, frame) for n, frame in enumerate(frames)]))
        return path

    def one(self, frame):
        return self.fields(self.capture([frame]))[0]


class Packets(Wireshark):
    def test_captures(self):
        """All captures: the same verdicts as wire.py's, and the sums that their README tells."""
        statuses, wrapped = [], None
        for path in sorted(CAPTURES.glob("*.pcap")):
            with self.subTest(path.name):
                rows = self.compare(path)
                statuses += [row[1] for row in rows]
                bad = sum(row[1] == BAD for row in rows)
                self.assertEqual(bad, 7 if path.name == "rc_write_corrupt_rx.pcap" else 0)
                if path.name == "rc_write_psnwrap.pcap":
                    wrapped = {row[2] for row in rows}
        self.assertGreater(len(statuses), 4000)
        self.assertLessEqual(max(abs(int(d)) for d in wrapped if d), 70, "a wrap is a small distance")

    def test_derived(self):
        """VLAN, QinQ, IPv4 options, IPv6 extension headers, snapped and torn files, pcapng, CNPs, NETANALYZER."""
        make_derived.main_to(self.dir / "derived")
        seen = set()
        for path in sorted((self.dir / "derived").iterdir()):
            if path.name in ("garbage.bin", "linux_sll.pcap"):
                continue
            with self.subTest(path.name):
                if path.name == "torn.pcap":
                    text, errors = self.tshark(path, silent=False)
                    self.assertIn("cut short", errors)
                    continue
                seen.update((path.name, row[1]) for row in self.compare(path))
        for name in ("vlan", "qinq", "options", "extensions", "cnp", "netanalyzer"):
            self.assertIn((name + ".pcap", GOOD), seen)
        self.assertIn(("snapped.pcap", UNVERIFIABLE), seen)
        cooked, plain = self.fields(self.dir / "derived/linux_sll.pcap"), self.fields(CAPTURES / "rdma_cm.pcap")
        self.assertEqual(cooked, plain)

    def test_vlan_over_ipv6(self):
        records = make_derived.load("rc_write_ipv6.pcap")
        path = self.capture([frame[:12] + bytes.fromhex("81000064") + frame[12:] for _, _, frame in records])
        self.assertEqual({row[1] for row in self.compare(path)}, {GOOD})
        path = self.capture([frame[:12] + bytes.fromhex("81000064") + frame[12:-9] + b"\x5a" + frame[-8:]
                             for _, _, frame in records])
        self.assertEqual({row[1] for row in self.compare(path)}, {BAD})

    def test_calculated_is_what_should_be_there(self):
        path = CAPTURES / "rc_write_corrupt_rx.pcap"
        for row, (_, _, frame) in zip(self.fields(path), wire.read_pcap(path)[0]):
            self.assertEqual(row[5], "0x" + wire.icrc(frame).hex())
        rows = self.fields(path, "-Y", "rocebox.icrc.bad", fields=("frame.number", "_ws.expert.message"))
        self.assertEqual(len(rows), 7)
        self.assertTrue(all("Bad ICRC: should be 0x" in row[1] for row in rows), rows)

    def test_two_passes_and_filters(self):
        """What a packet shows does not depend on when, or in which order, it is looked at."""
        path = CAPTURES / "rc_send_loss_rx.pcap"
        rows = self.compare(path)
        self.assertEqual(self.compare(path, "-2"), rows)
        for filter, wanted in (("rocebox.psn_distance > 1", lambda row: row[2] and int(row[2]) > 1),
                               ("rocebox.psn_distance < 0", lambda row: row[2] and int(row[2]) < 0)):
            chosen = [row for row in rows if wanted(row)]
            self.assertGreater(len(chosen), 3)
            self.assertEqual(self.fields(path, "-Y", filter), chosen)
            self.assertEqual(self.fields(path, "-2", "-R", filter, fields=FIELDS[4:5]), [row[4:5] for row in chosen])

    def test_preference(self):
        rows = self.fields(CAPTURES / "rc_write_corrupt_rx.pcap", "-o", "rocebox.verify_icrc:FALSE")
        self.assertEqual({(row[1], row[5]) for row in rows}, {("", "")})
        self.assertTrue(any(row[2] for row in rows))

    def test_lengths_that_lie(self):
        frame = make_derived.load("rc_write.pcap")[0][2]
        self.assertEqual(self.one(frame)[1], GOOD)
        self.assertEqual(self.one(frame + bytes(6))[1], GOOD, "padding of Ethernet")
        self.assertEqual(self.one(frame[:-1])[1], UNVERIFIABLE, "trimmed")
        udp = bytearray(frame)
        struct.pack_into(">H", udp, 38, struct.unpack_from(">H", udp, 38)[0] - 4)
        self.assertEqual(self.one(bytes(udp))[1], UNVERIFIABLE, "lengths differ")
        short = bytearray(frame[:54])
        struct.pack_into(">H", short, 16, 40)
        struct.pack_into(">H", short, 38, 20)
        self.assertEqual(self.one(bytes(short))[1], UNVERIFIABLE, "no room")
        self.assertEqual(self.one(frame[:53])[4], "", "BTH not held")

    def test_not_a_packet_of_its_own(self):
        """A fragment and the quote in an ICMP error get no tree; inside a tunnel the inner packet counts."""
        frame = make_derived.load("rc_write.pcap")[1][2]
        fragment = bytearray(frame)
        fragment[20] |= 0x20
        self.assertEqual(self.one(bytes(fragment))[4], "")

        def outer(protocol, rest):
            header = bytearray(frame[14:26] + frame[30:34] + frame[26:30])  # the other way
            struct.pack_into(">H", header, 2, 20 + len(rest))
            header[9], header[10], header[11] = protocol, 0, 0
            struct.pack_into(">H", header, 10, make_derived.ip_checksum(bytes(header)))
            return frame[:14] + bytes(header) + rest

        quote = struct.pack(">BBHI", 3, 4, 0, 1500) + frame[14:]
        self.assertEqual(self.one(outer(1, quote))[4], "")
        vxlan = struct.pack(">HHHHII", 50000, 4789, 16 + len(frame), 0, 0x08000000, 0x100) + frame
        self.assertEqual(self.one(outer(17, vxlan))[1], GOOD)

    def test_hostile_bytes(self):
        """Frames cut everywhere and with flipped bits: a verdict or none, never an error of Lua's."""
        draw, frames = random.Random(5), []
        for name in ("rc_send_imm", "ud_send_imm", "rc_write_ipv6", "rc_atomic_cas"):
            whole = make_derived.load(name + ".pcap")[0][2][:140]
            frames += [whole[:length] for length in range(14, len(whole))]
            for _ in range(400):
                frame = bytearray(whole)
                for _ in range(draw.randint(1, 4)):
                    at = draw.randrange(12, len(frame))
                    frame[at] ^= 1 << draw.randrange(8)
                frames.append(bytes(frame))
        rows = self.fields(self.capture(frames))
        self.assertEqual(len(rows), len(frames))
        self.assertEqual({row[6] for row in rows}, {""})
        self.assertEqual({row[1] for row in rows}, {"", BAD, GOOD, UNVERIFIABLE})


class Registry(Wireshark):
    EXAMPLE = ("rocebox.kernel", "example.repairs", "example.group", "example.color", "example.slot",
               "_ws.expert.message", "_ws.lua.text")

    def setUp(self):
        super().setUp()
        self.tree = self.dir / "wireshark"
        shutil.copytree(LUA, self.tree)
        (self.tree / "kernels").mkdir(exist_ok=True)
        self.script = self.tree / "rocebox.lua"

    def frames(self):
        """An opcode of its own, one too short for it, bits in two bytes of the BTH, an immediate."""
        records = make_derived.load("rc_send_imm.pcap")
        whole = next(f for _, _, f in records if wire.parse(f)["payload"] >= 64)
        immediate = next(f for _, _, f in records if wire.parse(f)["op"] == 0x05)

        def edit(frame, at, value):
            return make_derived.with_icrc(frame[:42 + at] + bytes([value]) + frame[43 + at:])

        repair = edit(whole, 0, 0x1d)
        repair = make_derived.with_icrc(repair[:54] + struct.pack(">HI", 7, 0xabcdef00) + repair[60:])
        short = make_derived.with_icrc(edit(immediate, 0, 0x1d))
        return [repair, short, edit(whole, 8, whole[50] | 0x02), edit(whole, 4, 0x20), immediate]

    def test_example(self):
        shutil.copy(KERNEL, self.tree / "kernels")
        path = self.capture(self.frames())
        rows = self.fields(path, script=self.script, fields=self.EXAMPLE)
        self.assertEqual(rows[0][:3], ["example repair", "7", "0xabcdef"])
        self.assertEqual(rows[1][:2], ["example repair", str(0xa000)])
        self.assertIn("example repair: ", rows[1][5], "the body of four bytes is too short for the group")
        self.assertEqual((rows[2][0], rows[2][3]), ("example color", "2"))
        self.assertEqual(rows[3][0], "example mark")
        self.assertEqual(rows[4][0], "")
        self.assertEqual({row[6] for row in rows}, {""})
        rows = self.fields(path, "-o", "example.slots:TRUE", script=self.script, fields=self.EXAMPLE)
        self.assertEqual((rows[4][0], rows[4][4]), ("example slot", str(0xa0000000)))
        cut = self.capture([self.frames()[0][:54]], "cut.pcap")  # right behind the BTH
        row, = self.fields(cut, script=self.script, fields=self.EXAMPLE)
        self.assertEqual((row[0], row[6]), ("example repair", ""))
        self.assertIn("example repair: ", row[5])
        text, _ = self.tshark(path, script=self.script)
        self.assertIn("[example repair] repairs 7 of 10.77.0.2 > 10.77.0.1", text.splitlines()[0])

    def test_script_beside(self):
        """A script given by a second -X reaches the registry as the global `rocebox`."""
        mine = self.dir / "mine.lua"
        mine.write_text('rocebox.register_opcode(0x1d, "mine", function(range, pinfo, tree) end)\n')
        rows = self.fields(self.capture(self.frames()[:1]), "-X", f"lua_script:{mine}", fields=("rocebox.kernel",))
        self.assertEqual(rows, [["mine"]])

    def test_broken_kernels_are_named_and_the_rest_works(self):
        shutil.copy(KERNEL, self.tree / "kernels/b_example.lua")
        reserved = "reserved are the bits 0x3f of byte 4 and 0x7f of byte 8"
        wrong = {  # what the registry is called with, and what is said of it
            "c_taken": ('register_opcode(0x1d, "c", print)', "`c`: opcode 0x1d is taken by `example repair`"),
            "d_range": ('register_opcode(256, "d", print)', "`d`: the opcode must be a whole number from 0 to 255"),
            "e_name": ('register_opcode(0x1e, "", print)', "the name must be a text that is not empty"),
            "f_function": ('register_immediate("f")', "`f` needs a function(range, pinfo, tree, packet)"),
            "g_bits": ('register_bth_bits(8, 0x80, "g")', reserved),
            "h_byte": ('register_bth_bits(1, 0x01, "h")', reserved),
            "l_header": ('register_opcode(0x1e, "l", print, 5)', "`l`: what finds the QPN must be a function(header)"),
            "i_half": ('register_bth_bits(8, 1.5, "i")', reserved),
            "j_taken": ('register_bth_bits(8, 0x06, "j")', "`j`: bits 0x02 of byte 8 are taken by `example color`"),
        }
        wrong = {f"{name}.lua": (f"return function(rocebox) rocebox.{call} end", message)
                 for name, (call, message) in wrong.items()}
        wrong["a_syntax.lua"] = "return function(", "expected"
        wrong["k_nothing.lua"] = "local x = 1", "the file must return a function(rocebox)"
        for name, (text, _) in wrong.items():
            (self.tree / "kernels" / name).write_text(text)
        path = self.capture(self.frames())
        out, errors = self.tshark(path, "-T", "fields", "-e", "rocebox.kernel", script=self.script, silent=False)
        self.assertEqual(out.splitlines()[0], "example repair")
        for name, (_, message) in wrong.items():
            line = next((l for l in errors.splitlines() if f"kernels/{name}: " in l), "")
            self.assertIn(message, line, f"{name}\n{errors}")
        self.assertEqual(len(errors.splitlines()), len(wrong), errors)


class Install(Wireshark):
    def build(self):
        """The build folder that the command is from."""
        folder = pathlib.Path(ROCEBOX).parent
        if not (folder / "cmake_install.cmake").is_file() or not pathlib.Path(ROCEBOX).is_file():
            self.skipTest(f"no build to install from beside {ROCEBOX}")
        return folder

    def test_installed_tree(self):
        """As a plugin folder, where Wireshark runs every file by itself: as good as by -X, and both together too."""
        prefix = self.dir / "prefix"
        done = subprocess.run(["cmake", "--install", self.build(), "--prefix", prefix], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = list(prefix.glob("lib/**/wireshark/plugins/rocebox/rocebox.lua"))
        self.assertEqual(len(found), 1)
        self.assertEqual(len(list(prefix.glob("**/rocebox.lua"))), 1, "two would be loaded twice")
        plugins = self.dir / ".local/lib/wireshark/plugins/rocebox"
        shutil.copytree(found[0].parent, plugins)
        (plugins / "kernels").mkdir(exist_ok=True)
        shutil.copy(KERNEL, plugins / "kernels")
        path = CAPTURES / "rc_write_corrupt_rx.pcap"
        rows = self.compare(path)  # by -X, with the plugin loaded before
        self.assertEqual(self.fields(path, script=None), rows)
        self.assertEqual(sum(row[1] == BAD for row in rows), 7)


def main():
    """Runs the tests of the script that is run; 77 when some or all cannot run here."""
    reason = without_lua()
    if reason:
        print("skipped:", reason, file=sys.stderr)
        sys.exit(77)
    finish.main()


if __name__ == "__main__":
    main()
