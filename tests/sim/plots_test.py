#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `--plot` of `rocebox sim` and `rocebox model` draws."""
import os
import pathlib
import re
import struct
import subprocess
import sys
import unittest
import zlib
from xml.etree import ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "replay"))
from common import RoceboxTest, finish



def plotting_python():
    """Which Python has matplotlib; None: none."""
    return next((python for python in ("python3", "/usr/bin/python3")
                 if subprocess.run([python, "-c", "import matplotlib"], capture_output=True, check=False).returncode == 0), None)


HAS_MATPLOTLIB = plotting_python() is not None
PLOT = str(pathlib.Path(__file__).resolve().parents[2] / "configs/sim/plot.py")
SVG = "{http://www.w3.org/2000/svg}"
PAIR = """
topology: {leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 1}, hosts: {nic: {header_only: true}}, switches: {switch: {}}}
links: {leaf0_spine0: {loss: 1%}, leaf0_spine1: {loss: 1%}}
workloads: {there: {type: permutation, size: 1MiB}, back: {type: permutation, size: 64KiB}}
"""


def png_rows(path):
    """Width, height, and the pixels' bytes as they stand in the file, filtered."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", path
    packed, at, size = b"", 8, None
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0], path
        if kind == b"IHDR":
            size = struct.unpack(">II", body[:8])
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    return *size, zlib.decompress(packed)


class Plots(RoceboxTest):
    def texts(self, path):
        """The words of a figure: matplotlib draws them as outlines, and says in a comment before each which they are."""
        ElementTree.parse(path)
        return [text.strip() for text in re.findall("<!--(.*?)-->", path.read_text(), re.DOTALL)]

    def look(self, names, folder):
        for name in names:
            root = ElementTree.parse(folder / f"{name}.svg").getroot()
            self.assertEqual(root.tag, f"{SVG}svg")
            self.assertTrue([one for one in root.iter(f"{SVG}g") if one.get("id", "").startswith("axes_")], name)
            width, height, pixels = png_rows(folder / f"{name}.png")
            self.assertGreaterEqual(min(width, height), 150, name)
            self.assertEqual(len(pixels), height * (1 + 4 * width), "8 bits each of red, green, blue and alpha")
            self.assertGreater(len(set(pixels)), 8, f"{name}: an empty figure")

    @unittest.skipUnless(HAS_MATPLOTLIB, "no matplotlib: apt install python3-matplotlib")
    def test_a_link_without_a_rate_is_in_no_figure_of_shares(self):
        config = self.config("devices: {a: {nic: {address: 10.0.0.1, rate: 10Gbps}}, b: {nic: {address: 10.0.0.2}}}\n"
                             "links: {c: {between: [a.wire, b.wire], delay: 1us}}\nworkloads: {w: {type: write_bw, hosts: [a, b], iters: 3}}\n")
        self.rocebox("sim", config, "--plot", self.dir, "--quiet")
        shown = self.texts(self.dir / "utilisation.svg")
        self.assertIn("c from a.wire", shown)
        self.assertNotIn("c from b.wire", shown)

    @unittest.skipUnless(HAS_MATPLOTLIB, "no matplotlib: apt install python3-matplotlib")
    def test_a_simulation(self):
        folder = self.dir / "plot"
        self.rocebox("sim", self.config(PAIR), "--plot", folder, "--quiet")
        drawn = {"completion", "goodput", "utilisation", "load", "signals", "levels", "queues"}
        self.assertEqual({path.stem for path in folder.glob("*.svg")}, drawn)
        self.assertEqual({path.stem for path in folder.glob("*.png")}, drawn)
        self.assertLessEqual({"report.json", "series.csv", "load.csv"}, {path.name for path in folder.iterdir()})
        self.look(drawn, folder)
        for name in ("completion", "goodput"):
            self.assertLessEqual({"there", "back"}, set(self.texts(folder / f"{name}.svg")))
        self.assertIn("goodput (Gbit/s)", self.texts(folder / "goodput.svg"))
        self.assertIn("leaf0_spine0 from leaf0.p1", " ".join(self.texts(folder / "utilisation.svg")))
        self.assertIn("nic.retransmitted_packets", self.texts(folder / "signals.svg"))
        self.assertIn("leaf0.switch.queue_bytes.", " ".join(self.texts(folder / "queues.svg")))

    @unittest.skipUnless(HAS_MATPLOTLIB, "no matplotlib: apt install python3-matplotlib")
    def test_no_label_is_cut_off(self):
        series = {"at_ns": [0, 1000], "end_ns": 2000, "counts": {"nic.naks_sent": [1, 2]}, "utilisation": {"l from a.p0": [0.5, 1]},
                  "levels": {"s.switch.queue_bytes.p0": [10, 90], "s.switch.buffer_bytes": [10, 90]}}
        words = (f"import runpy; plot = runpy.run_path({PLOT!r})\n"
                 "def save(figure, folder, name):\n"
                 "    figure.tight_layout(); figure.canvas.draw()\n"
                 "    for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis):\n"
                 "        box = axis.label.get_window_extent()\n"
                 "        assert box.min.min() >= 0 and (box.max <= figure.bbox.max).all(), (name, axis.label.get_text(), box)\n"
                 "    print(name)\n"
                 "plot['curves'].__globals__['save'] = save\n"
                 f"plot['over_time']({{'series': {series!r}}}, None)")
        self.assertEqual(subprocess.check_output([plotting_python(), "-c", words], text=True).split(),
                         ["signals", "queues", "levels", "load"])

    @unittest.skipUnless(HAS_MATPLOTLIB, "no matplotlib: apt install python3-matplotlib")
    def test_completion_times_are_those_of_all_transfers(self):
        """Also of those that the report omits."""
        table = self.dir / "transfers.csv"
        table.write_text("workload,done,completion_ns\r\nw,true,9\r\nw,true,4\r\nw,false,0\r\nw,true,7\r\n")
        report = {"workloads": {"w": {"transfers_omitted": 0, "flows": [{"done": True, "completion_ns": 9}, {"done": False, "completion_ns": 0}]}}}
        for omitted, times in (0, [9]), (2, [4, 7, 9]):
            report["workloads"]["w"]["transfers_omitted"] = omitted
            words = f"import pathlib, runpy; print(runpy.run_path({PLOT!r})['completion_times']({report}, pathlib.Path({str(table)!r})))"
            self.assertEqual(subprocess.check_output([plotting_python(), "-c", words], text=True).strip(), str({"w": times}))

    @unittest.skipUnless(HAS_MATPLOTLIB, "no matplotlib: apt install python3-matplotlib")
    def test_equal_runs_give_equal_figures(self):
        for folder in ("one", "two"):
            self.rocebox("sim", self.config(PAIR), "--plot", self.dir / folder, "--quiet")
        for path in (self.dir / "one").glob("*.svg"):
            self.assertEqual(path.read_text(), (self.dir / "two" / path.name).read_text(), path.name)

    @unittest.skipUnless(HAS_MATPLOTLIB, "no matplotlib: apt install python3-matplotlib")
    def test_a_model(self):
        folder = self.dir / "plot"
        self.rocebox("model", "sdr", "--set", "figure=12", "--plot", folder, "-q")
        self.assertEqual({path.name for path in folder.iterdir()},
                         {"report.json"} | {f"figure_12_{name}.{kind}" for name in ("distance", "bandwidth") for kind in ("svg", "png")})
        self.look(("figure_12_distance", "figure_12_bandwidth"), folder)

    def test_without_matplotlib_its_package_is_named_before_anything_runs(self):
        """Also where there is one: a module of that name that cannot be imported stands before it."""
        (self.dir / "matplotlib.py").write_text("raise ImportError\n")
        environment = {**os.environ, "PYTHONPATH": str(self.dir)}
        for words in (("sim", self.config(PAIR)), ("model", "sdr", "--set", "figure=12")):
            said = self.rocebox(*words, "--plot", self.dir / "plot", status=2, env=environment)[1]
            self.assertIn("python3-matplotlib", said)
            self.assertFalse((self.dir / "plot").exists())


if __name__ == "__main__":
    finish.main()
