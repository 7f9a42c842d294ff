#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the READMEs show runs: every YAML block is a good configuration or part of one, the top README's commands do what stands
there, its table is what quickstart prints, and no link leads nowhere."""
import re
import shlex
import subprocess
import sys
import unittest
import xml.etree.ElementTree

from common import CAPTURES, HERE, ROCEBOX, RoceboxTest

ROOT = HERE.parent.parent
FOLDERS = ("bench", "configs", "kernels", "pipelines", "runtime", "switch_model", "tests")
READMES = [ROOT / "README.md", *(path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("README.md")))]
LIVE = ("run", "lab", "top", "reload", "trace", "capture")


def blocks(text, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.S | re.M)


def whole(block):
    """The block as a configuration of its own; None where it is no configuration of ours."""
    first = re.match(r"(\w+):", block).group(1)
    if first == "scrape_configs":  # Prometheus'
        return None
    device, link = "devices:\n  d:\n", "devices:\n  d:\n    path: a <-> link <-> b\n    kernels:\n"
    switch = device + "    switch:\n      ports: [h1, h2, probe, up]\n"
    lab = "lab: two\nappliances: {bump: {config: bump.yaml}}\nwires: [left <-> bump.a, bump.z <-> right]\n"
    above = {"hosts": (lab, 0), "path": (device, 4), "link": (link, 6), "match": (link + "      link:\n", 8),
             "programs": (switch, 6), "forward": (switch, 6),
             "packet_generator": (switch, 6)}
    head, indent = above.get(first, ("", 0))
    return head + "".join(" " * indent + line for line in block.splitlines(True))


class Readme(RoceboxTest):
    def setUp(self):
        super().setUp()
        # What the examples name: the tree's own folders, a capture, a bump.
        for name in ("configs", "tests", "pipelines"):
            (self.dir / name).symlink_to(ROOT / name)
        for name in ("trace.pcap", "t.pcap"):
            (self.dir / name).symlink_to(CAPTURES / "perftest_write.pcap")
        self.config("devices: {bump: {path: a <-> z}}\n", "bump.yaml")

    def test_every_block_of_yaml_is_good(self):
        seen = 0
        for path in READMES:
            for number, block in enumerate(blocks(path.read_text(), "yaml")):
                text = whole(block)
                with self.subTest(f"{path.relative_to(ROOT)} block {number}"):
                    if text is None:
                        continue
                    (self.dir / "FOLDER").mkdir(exist_ok=True)
                    out, _ = self.rocebox("check", self.config(text, "block.yaml"), cwd=self.dir)
                    self.assertIn(": good.", out)
                    seen += 1
        self.assertGreater(seen, 8)

    def test_the_example_of_the_top_runs_and_holds(self):
        (block,) = blocks((ROOT / "README.md").read_text(), "yaml")
        report = self.replay(self.config(block))
        self.assertGreaterEqual(len(report["expectations"]), 3)
        self.assertGreater(report["links"]["haul"]["counters"]["forward_drop_loss"], 0, "else it says little")
        self.assertTrue((self.dir / "there.pcapng").exists())

    def test_the_commands_of_the_top_run(self):
        text = "".join(blocks((ROOT / "README.md").read_text(), "sh")).replace("\\\n", " ")
        commands = [line.split("  #")[0].strip() for line in text.splitlines() if line.startswith("rocebox ")]
        run = [command for command in commands if command.split()[1] not in LIVE]
        self.assertGreater(len(run), 5)
        for command in run:
            with self.subTest(command):
                done = subprocess.run(["bash", "-c", f"rocebox() {{ {shlex.quote(ROCEBOX)} \"$@\"; }}; {command}"], cwd=self.dir,
                                      capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
        for command in commands:  # those that want a machine of their own have good configurations
            words = command.split()
            config = next((word for word in words if word.endswith(".yaml")), None)
            if words[1] in LIVE and config:
                self.assertTrue((ROOT / config).is_file(), config)

    def test_the_table_is_what_quickstart_prints(self):
        table = next(block for block in blocks((ROOT / "README.md").read_text(), "") if "without LoWAR" in block)
        said = subprocess.run([sys.executable, "-B", str(ROOT / "configs/quickstart.py"), ROCEBOX], capture_output=True, text=True, check=True)
        self.assertIn(table, said.stdout)

    def test_links_and_pictures_lead_somewhere(self):
        for path in READMES:
            for target in re.findall(r"\]\(([^)#\s]+)\)", path.read_text()):
                if "://" not in target:
                    self.assertTrue((path.parent / target).exists(), f"{path.relative_to(ROOT)}: {target}")

    def test_pictures_of_a_terminal_show_what_was_printed(self):
        sys.path.insert(0, str(ROOT / "bench/figures"))
        sys.dont_write_bytecode = True
        import terminal_pictures
        picture = xml.etree.ElementTree.fromstring(terminal_pictures.svg("rocebox x", "a <b>\n\033[1mbold\033[0m & plain\n"))
        lines = ["".join(line.itertext()) for line in picture.iter("{http://www.w3.org/2000/svg}text")]
        self.assertEqual(lines, ["$ rocebox x", "a <b>", "bold & plain"])
        for path in (ROOT / "bench/figures").glob("*.svg"):
            self.assertNotIn("\\x1b", "".join(xml.etree.ElementTree.parse(path).getroot().itertext()))
            self.assertLess(path.stat().st_size, 64 << 10)

    def test_the_help_of_quickstart(self):
        for words, status in ((["--help"], 0), (["-h"], 0), ([], 2)):
            done = subprocess.run([sys.executable, "-B", str(ROOT / "configs/quickstart.py"), *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, status)
            self.assertIn("usage: quickstart.py ROCEBOX", done.stdout if status == 0 else done.stderr)
        done = subprocess.run([ROOT / "configs/quickstart.sh", "--seed", "7", "--help"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("usage: quickstart.py ROCEBOX", done.stdout)


if __name__ == "__main__":
    unittest.main()
