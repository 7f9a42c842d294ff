#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The house rules of the tree: who may include whom, what the datapath must not call, sizes, licences, layout."""
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import finish  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOP = {"CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "runtime", "kernels", "pipelines", "nic_model",
       "switch_model", "configs", "tests", "bench"}
LINES_MAX, FUNCTION_LINES_MAX = 360, 75
MODELS = {"nic_model", "switch_model"}
# Rooms of the datapath: no clock, sleep, thread, lock, log or randomness of their own. (Allocations are counted by the
# tests of the contracts, over every kernel of the registry.)
DATAPATH = ("kernels/", "nic_model/", "switch_model/", "runtime/packet/", "runtime/roce/", "runtime/flows/", "runtime/kernel/",
            "runtime/engine/")
BANNED = re.compile(r"std::chrono|clock_gettime|gettimeofday|\btime\(|rdtsc|rte_get_t|\bu?sleep\(|nanosleep|sleep_for|std::thread"
                    r"|std::mutex|std::c(out|err|log)\b|\bf?printf\(|rte_log|RTE_LOG|spdlog|random_device|\brand\(|std::mt19937|getenv"
                    r"|__builtin_prefetch\(")  # GCC drops it: runtime/packet/prefetch.h
# Front ends as the command is: users' threads call the first, which starts a live drive of its own; the other is a
# program of users.
FRONT_END = ("kernels/sdr/sdk/", "kernels/scr/host/")
# (file, pattern): why it may.
ALLOWED = {
    ("runtime/engine/pipeline.cc", "fprintf("): "a broken invariant ends the process with its values",
    ("runtime/kernel/packed.h", "std::mutex"): "devices are made and destroyed on several threads, which no packet waits for",
}


def tracked():
    """Files of the project, those not yet committed included; in an exported tree: all but build folders."""
    done = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    if done.returncode == 0:
        names = done.stdout.splitlines()
    else:
        names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file() and "build" not in p.parts and ".git" not in p.parts]
    return [n for n in names if (ROOT / n).is_file()]


FILES = tracked()
SOURCES = [f for f in FILES if f.endswith((".h", ".cc"))]
TEXTS = {f: (ROOT / f).read_text() for f in SOURCES}


def includes(text):
    return re.findall(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', text, re.M)


KERNELS = {folder.name for folder in (ROOT / "kernels").iterdir() if folder.is_dir()}


def kernels_of(path):
    """Kernels with whose folder a file goes: kernels/NAME/, tests/unit/kernels/NAME_*, tests/unit/NAME/, tests/fuzz/NAME_*. What a
    kernel's folder has below is its own, whatever its name."""
    own = re.match(r"kernels/\w+/", path)
    return {kernel for kernel in KERNELS if re.search(rf"/{kernel}[/_.]", own[0] if own else path)}


def of_another_kernel(file, target):
    """A kernel's folder can be deleted, and its tests with it: what tests more does not include it."""
    missed = kernels_of(target) - kernels_of(file) if target.startswith(("kernels/", "tests/")) else None
    return f"it would not build without kernels/{missed.pop()}" if missed else None


def may_include(file, target):
    """Dependencies point down only: kernels -> models -> runtime; drives are seen by the command and tests alone."""
    room, goal = file.split("/")[0], target.split("/")[0]
    if target.startswith(("rte_", "cmdline")) and room not in {"runtime", "tests", "bench"} | MODELS:
        return "only runtime and the two models include DPDK"
    if room in ("tests", "bench"):
        return of_another_kernel(file, target)
    if goal not in TOP:
        return None
    if room == "runtime" and goal != "runtime":
        return "runtime knows nothing above it"
    if room in MODELS and goal not in ("runtime", room):
        return "a model knows itself and runtime"
    if room == "kernels" and goal == "kernels" and file != "kernels/registry.cc" and target.split("/")[1] != file.split("/")[1]:
        return "two kernels never include each other"
    if target.startswith("runtime/drives/") and not file.startswith(("runtime/drives/", "runtime/cli/", *FRONT_END)):
        return "nothing sees a drive but the command line, the SDK and tests"
    if target.startswith("runtime/cli/") and not file.startswith("runtime/cli/"):
        return "nothing sees the command line"
    if target.startswith("runtime/lab/") and not file.startswith(("runtime/lab/", "runtime/cli/", "tests/")):
        return "nothing sees labs but the command line and tests"
    below = {"packet": 0, "roce": 1, "flows": 1, "component": 1, "kernel": 1, "engine": 2, "capture": 2, "process": 2, "config": 3,
             "topology": 3, "telemetry": 4, "drives": 5, "lab": 5, "cli": 6}
    if room == "runtime" and file.count("/") == 2 and target.count("/") == 2:
        here, there = below.get(file.split("/")[1]), below.get(target.split("/")[1])
        if here is not None and there is not None and there > here and there > 1:
            return "rooms of runtime include those below them"
    return None


# The array of the registry names them.
COMPONENTS = re.findall(r"(\w+)_(?:component|model|workloads?)\(\)", TEXTS["kernels/registry.cc"])
# `link` is a word of the ground floor's own, too: `links:` of a configuration, the state of a cable. Prose has these as
# words of the language and the field.
GROUND_WORDS = {"link"}
PROSE_WORDS = {"link", "switch", "forward", "nic"}


def components_named(text):
    """Components that code of runtime/ names: in an identifier, or in a literal that is one word. Comments and texts for people
    name none either, not as an example; of PROSE_WORDS they quote none as a name: `switch:`, the kernel `link`."""
    comments = re.findall(r"//([^\n]*)", re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text))
    code = re.sub(r"(\"(?:[^\"\\\n]|\\.)*\")|//[^\n]*", lambda m: m[1] or "", text).replace("std::forward", "")
    literals = re.findall(r'"((?:[^"\\\n]|\\.)*)"', re.sub(r"#include[^\n]*", "", code))
    code = re.sub(r"\bswitch \(", "", re.sub(r'"(?:[^"\\\n]|\\.)*"', "", code))
    words = re.findall(r"\w+", code) + [literal for literal in literals if re.fullmatch(r"[\w.:-]+", literal)]
    parts = {part.lower() for word in words for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", word)}
    named = (parts | {word.lower() for word in words}) & (set(COMPONENTS) - GROUND_WORDS)
    for prose in [*comments, *(literal for literal in literals if " " in literal)]:
        named |= {word.lower() for word in re.findall(r"[A-Za-z]+", prose) + re.findall(r"[A-Za-z_]+", prose)} & (set(COMPONENTS) - PROSE_WORDS)
        for quoted in re.findall(r"`([^`]*)`", prose):
            named |= {quoted.strip(":")} & PROSE_WORDS
    return sorted(named)


class Tidy(unittest.TestCase):
    def test_the_ground_floor_knows_no_component_by_name(self):
        self.assertGreater(len(COMPONENTS), 5)
        self.assertLessEqual({folder.name for folder in (ROOT / "kernels").iterdir() if folder.is_dir()}, set(COMPONENTS))
        for file, text in TEXTS.items():
            if file.startswith("runtime/"):
                self.assertEqual(components_named(text), [], file)

    def test_the_rule_of_names_can_fail(self):
        for text, name in (('f.find("switch");', "switch"), ("kLowarOpcode", "lowar"), ("struct AclRule {};", "acl"),
                           ('read("forward_packets")', "forward"), ("themis::Config config;", "themis"),
                           ("int a;  // LoWAR does", "lowar"), ('"such as `tap.inspect.naks == 0`"', "inspect"),
                           ("// as the kernel `link` does", "link"), ('f.find("inc_reduce");', "inc_reduce"), ('"its kind, as in `switch:`"', "switch")):
            self.assertEqual(components_named(text), [name], text)
        for text in ("switch (kind) {", "std::forward<T>(value)", "LinkConfig link;", "// a link between two ports goes down",
                     '"`ip link` lists them"; // as a switch forwards', '"http://acl.example/x"', '#include "runtime/packet/packet.h"'):
            self.assertEqual(components_named(text), [], text)

    def test_includes_point_down(self):
        self.assertGreater(len(SOURCES), 50)
        for file, text in TEXTS.items():
            for target in includes(text):
                self.assertIsNone(may_include(file, target), f"{file} includes {target}: {may_include(file, target)}")

    def test_the_rule_can_fail(self):
        for file, target in (("runtime/engine/x.h", "kernels/link/link.h"), ("kernels/link/x.cc", "rte_mbuf.h"),
                             ("kernels/link/x.cc", "kernels/inspect/flow.h"), ("kernels/link/x.cc", "runtime/drives/replay.h"),
                             ("switch_model/x.cc", "nic_model/y.h"), ("runtime/drives/x.cc", "runtime/lab/lab.h"), ("runtime/lab/x.cc", "runtime/drives/live/live.h"),
                             ("runtime/packet/x.h", "runtime/engine/pipeline.h"),
                             ("tests/unit/contracts/x.cc", "kernels/lowar/repair_header.h"),
                             ("tests/swarm/x.cc", "tests/unit/kernels/lowar_kit.h"), ("tests/unit/themis/x.cc", "kernels/link/link.h"),
                             ("bench/micro/x.cc", "kernels/themis/themis.h")):
            self.assertIsNotNone(may_include(file, target), (file, target))
        self.assertIsNone(may_include("bench/micro/allgather_x.h", "kernels/allgather/dpa/x.h"))

    def test_tests_know_which_kernels_have_folders(self):
        """So that they are left out where the folder is gone."""
        named = re.search(r"foreach\(kernel ([a-z ]+)\)", (ROOT / "tests/CMakeLists.txt").read_text())[1].split()
        self.assertLessEqual(KERNELS, set(named))

    def test_datapath_calls_nothing_that_it_must_not(self):
        for file, text in TEXTS.items():
            if not file.startswith(DATAPATH) or file.startswith(FRONT_END):
                continue
            code = re.sub(r"//[^\n]*", "", text)
            for match in BANNED.finditer(code):
                allowed = any(file == f and match.group(0) in p for f, p in ALLOWED)
                self.assertTrue(allowed, f"{file}: {match.group(0)}")

    def test_licence_lines(self):
        for file in FILES:
            if file.endswith((".h", ".cc", ".py", ".sh", ".cmake", ".lua")) or file.endswith("CMakeLists.txt") or file == ".ci/run":
                head = (ROOT / file).read_text()[:300]
                self.assertIn("SPDX-License-Identifier: BSD-3-Clause", head, file)

    def test_sizes(self):
        for file, text in TEXTS.items():
            self.assertLessEqual(text.count("\n"), LINES_MAX, f"{file}: would two rooms be clearer?")
            if file.startswith(("tests/", "bench/")):
                continue
            begin = None
            for number, line in enumerate(text.split("\n")):
                if begin is None and re.match(r"^\S.*\)( const)?( noexcept)?( ->.*)? \{$", line):
                    begin = number
                elif line == "}" and begin is not None:
                    self.assertLessEqual(number - begin, FUNCTION_LINES_MAX, f"{file}:{begin + 1}: a function too long to see at once")
                    begin = None

    def test_who_may_skip_says_so(self):
        for file in FILES:
            text = (ROOT / file).read_text() if re.match(r"tests/.*\.py$", file) else ""
            if re.search(r"\.skipTest\(|@unittest\.skip|SkipTest\(", text):
                self.assertNotRegex(text, r"unittest\.main\(", f"{file}: ends as if all its tests had run; finish.main() does not")

    def test_layout(self):
        for file in FILES:
            top = file.split("/")[0]
            self.assertTrue(top in TOP or top.startswith("."), f"{file}: not in the agreed layout")
        for folder in (ROOT / "kernels").iterdir():
            if folder.is_dir():
                self.assertTrue((folder / "README.md").is_file(), f"{folder.name} has no README")
                self.assertRegex(TEXTS["kernels/registry.cc"], rf"\b{folder.name}_(component|model|workloads)\(\)", "every kernel, program and model stands in the registry")

    def test_no_path_of_a_machine(self):
        word = re.compile("/" + r"(work|farm|root|home)/[a-z]")
        for file in FILES:
            if file.endswith((".pcap", ".pcapng")):
                continue
            for number, line in enumerate((ROOT / file).read_text(errors="replace").splitlines(), 1):
                self.assertIsNone(word.search(line), f"{file}:{number}")



class Format(unittest.TestCase):
    def test_format(self):
        if not shutil.which("clang-format"):
            self.skipTest("clang-format is not installed")
        done = subprocess.run(["clang-format", "--dry-run", "-Werror", *SOURCES], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[:2000] + "\nrun: clang-format -i $(git ls-files '*.h' '*.cc')")


if __name__ == "__main__":
    finish.main()
