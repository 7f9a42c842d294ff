#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Debian package that CPack makes: its files, its control fields, and that what is in it runs."""
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from command_help import ROOT

BUILD = pathlib.Path(os.environ.get("ROCEBOX_BUILD", ROOT / "build" / "release"))
PROGRAMS = ("/usr/bin/rocebox", "/usr/bin/rocebox-hints")


def sh(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return done.stdout


class Deb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        # A careless umask must not show in the package.
        sh("cpack", "-G", "DEB", "--config", BUILD / "CPackConfig.cmake", "-B", cls.folder / "cpack", cwd=BUILD, umask=0o077)
        (cls.deb,) = (cls.folder / "cpack").glob("*.deb")
        cls.root = cls.folder / "root"
        sh("dpkg-deb", "-x", cls.deb, cls.root)
        cls.listing = {words[5].removeprefix("."): words for words in map(str.split, sh("dpkg-deb", "-c", cls.deb).splitlines())}

    def field(self, name):
        return sh("dpkg-deb", "-f", self.deb, name).strip()

    def test_has_every_file_in_its_place(self):
        for path in ("bin/rocebox", "include/rocebox/runtime/kernel/kernel.h", "include/rocebox/runtime/limits.h",
                     "lib/cmake/rocebox/rocebox-config.cmake", "lib/systemd/system/rocebox@.service",
                     "share/bash-completion/completions/rocebox", "share/doc/rocebox/README.md", "share/doc/rocebox/changelog.gz",
                     "share/doc/rocebox/copyright", "share/man/man1/rocebox.1.gz", "share/man/man5/rocebox.5.gz",
                     "share/rocebox/configs/live/bump.yaml", "share/rocebox/configs/replay/inspect.yaml",
                     "share/rocebox/configs/rocebox.schema.json", "share/dpdk/telemetry-endpoints/rocebox.py",
                     "share/rocebox/configs/rocebox-lab.schema.json", "share/rocebox/configs/lab/two_hosts.yaml",
                     "share/rocebox/lab/vm/vm.py", "share/rocebox/lab/vm/machine.py", "share/rocebox/lab/vm/channel.py",
                     "share/rocebox/lab/vm/build_image.sh", "share/rocebox/lab/vm/guest/init", "share/rocebox/lab/vm/guest/agent",
                     "share/rocebox/lab/vm/guest/verbs_check.c", "share/rocebox/lab/vm/guest/verbs_check_side.h",
                     "share/rocebox/pipelines/wan_gateway.yaml", "share/rocebox/configs/live/wan_gateway.yaml"):
            self.assertIn(f"/usr/{path}", self.listing)
        for path in self.listing:
            self.assertTrue("/usr/".startswith(path) or path.startswith("/usr/"), path)
            # The one script that belongs there is no program: `rocebox lab` and vm.py give it to bash.
            if path != "/usr/share/rocebox/lab/vm/build_image.sh":
                self.assertNotRegex(path, r"\.(sh|cc|o|in|pyc)$")

    def test_is_root_s_and_readable_by_all(self):
        for path, (mode, owner, *_) in self.listing.items():
            if mode.startswith("l"):  # the names of a shared library; their rights are those of what they lead to
                self.assertRegex(path, r"/libsdr\.so(\.0)?( ->|$)")
                self.assertEqual(owner, "root/root", path)
                continue
            expected = "drwxr-xr-x" if path.endswith("/") else "-rwxr-xr-x" if path in PROGRAMS else "-rw-r--r--"
            self.assertEqual((mode, owner), (expected, "root/root"), path)

    def test_names_what_it_depends_on(self):
        self.assertEqual(self.field("Package"), "rocebox")
        self.assertEqual(self.field("Version"), re.search(r"VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text().split("project(")[1]).group(1))
        depends = self.field("Depends")
        # By the linker, and (mempool-ring, bus-vdev) by name: without that driver there is no packet pool.
        for library in ("libc6", "libpcap0.8", r"librte-eal\d+", r"librte-mempool-ring\d+", r"librte-bus-vdev\d+", r"libyaml-cpp[\d.]+", r"libcpp-httplib[\d.]+"):
            self.assertRegex(depends, rf"(^|, ){library}(,| |$)")
        names = re.findall(r"[\w.+-]+(?=[ ,]|$)", re.sub(r"\([^)]*\)", "", depends))
        sh("dpkg-query", "-W", *names, *self.field("Recommends").split(", "))  # they exist: the build took them
        self.assertRegex(self.field("Description"), r"^\S[^\n]{10,79}\n \S")
        self.assertRegex(self.field("Maintainer"), r"^[^<>]+ <[^<>@]+@[^<>]+>$")

    def test_what_is_in_it_runs(self):
        command = self.root / "usr/bin/rocebox"
        self.assertRegex(sh(command, "--version"), rf"^rocebox {re.escape(self.field('Version'))}\n$")
        self.assertIn("link", sh(command, "kernels"))
        report = self.folder / "report.json"
        sh(command, "replay", self.root / "usr/share/rocebox/configs/replay/inspect.yaml",
           "--in", f"a={ROOT}/tests/replay/captures/rc_write.pcap", "--json", report)
        self.assertGreater(report.stat().st_size, 100)
        self.assertIn("lowar", sh(command, "check", self.root / "usr/share/rocebox/configs/live/wan_gateway.yaml"))
        for config in sorted((self.root / "usr/share/rocebox/configs").glob("*/*.yaml")):
            if config.name != "player.yaml":  # its capture is the user's
                sh(command, "replay" if config.parent.name == "replay" else "check", config)
        self.assertIn("--tap", sh("python3", "-B", self.root / "usr/share/rocebox/lab/vm/vm.py", "start", "--help"))

    def test_pages_and_changelog_are_packed_as_they_are_in_the_tree(self):
        for packed, source in (("man/man1/rocebox.1.gz", "runtime/cli/man/rocebox.1"), ("man/man5/rocebox.5.gz", "runtime/cli/man/rocebox.5"),
                               ("doc/rocebox/changelog.gz", "configs/package/changelog")):
            data = (self.root / "usr/share" / packed).read_bytes()
            self.assertEqual(gzip.decompress(data), (ROOT / source).read_bytes())
            self.assertEqual(data[3:8], bytes(5), "no name and no time in it: equal builds give equal files")
        version = re.match(r"rocebox \(([^)]+)\)", (ROOT / "configs/package/changelog").read_text()).group(1)
        self.assertEqual(version, self.field("Version"))


if __name__ == "__main__":
    missing = [tool for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps", "file", "strip") if not shutil.which(tool)]
    if missing:
        print("skipped: not installed:", *missing)
        sys.exit(77)
    unittest.main()
