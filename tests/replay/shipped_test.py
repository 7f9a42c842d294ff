#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What is shipped is good: every configuration and pipeline of the tree, and where the installed command finds them."""
import json
import pathlib
import subprocess

from common import HERE, ROCEBOX, RoceboxTest, finish

ROOT = HERE.parent.parent
REPLAYED = sorted([*(ROOT / "configs").glob("quickstart*.yaml"), *(ROOT / "configs/replay").glob("*.yaml")])
SHIPPED = REPLAYED + sorted((ROOT / "configs/live").glob("*.yaml"))
PIPELINES = sorted((ROOT / "pipelines").glob("*.yaml"))


class Shipped(RoceboxTest):
    def test_every_configuration_is_good_and_in_the_schema(self):
        import jsonschema
        import yaml
        schema = json.loads((ROOT / "configs/rocebox.schema.json").read_text())
        self.assertGreater(len(SHIPPED), 8)
        for path in SHIPPED:
            with self.subTest(path.name):
                if path.name != "player.yaml":  # its capture is the user's
                    self.assertIn(": good.", self.rocebox("check", path)[0])
                jsonschema.validate(yaml.safe_load(path.read_text()), schema)

    def test_every_replay_does_what_it_expects(self):
        for path in REPLAYED:
            with self.subTest(path.name):
                report = self.replay(path)
                self.assertTrue(all(row["holds"] for row in report.get("expectations", [])))

    def test_every_pipeline_is_found_by_its_name(self):
        self.assertGreater(len(PIPELINES), 1)
        table = (ROOT / "pipelines/README.md").read_text()
        for path in PIPELINES:
            text, _ = self.rocebox("check", self.config(f"devices: {{d: {{pipeline: {path.stem}}}}}\n"))
            self.assertRegex(text, rf"device d: .*, ports .* \(pipeline .*/pipelines/{path.name}\)")
            self.assertIn(f"({path.name})", table)

    def test_a_name_that_is_none_is_told_with_the_nearest(self):
        config = self.config("devices:\n  d: {pipeline: wan_gatway}\n")
        out, error = self.rocebox("check", config, status=2)
        self.assertEqual(out, "")
        self.assertIn("config.yaml:2:17: there is no pipeline `wan_gatway`; did you mean `wan_gateway`?", error)
        self.assertIn("this is a pipeline", self.rocebox("check", PIPELINES[0], status=2)[1])

    def test_check_prints_what_came_out_and_it_loads_again(self):
        config = self.config("devices: {d: {pipeline: wan_gateway, kernels: {lowar: {r: 8}}}}\n")
        first, _ = self.rocebox("check", config)
        self.assertIn("        r: 8\n", first)
        self.assertNotIn("pipeline:", first)
        second, _ = self.rocebox("check", self.config(first))
        without = [line.split(" (pipeline")[0] for line in first.splitlines()[1:]]
        self.assertEqual(without, second.splitlines()[1:])

    def test_installed_they_are_found_under_the_prefix(self):
        build = pathlib.Path(ROCEBOX).parent
        if not (build / "cmake_install.cmake").is_file():
            self.skipTest(f"no build to install from beside {ROCEBOX}")
        prefix = self.dir / "prefix"
        subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, capture_output=True)
        configs = prefix / "share/rocebox/configs"
        self.assertEqual([path.name for path in REPLAYED if path.parent.name == "replay"],
                         sorted(path.name for path in (configs / "replay").glob("*.yaml")))
        for path in sorted(configs.glob("*/*.yaml")):
            if path.name == "player.yaml":  # its capture is the user's
                continue
            with self.subTest(path.name):
                command = "replay" if path.parent.name == "replay" else "check"
                done = subprocess.run([prefix / "bin/rocebox", command, path], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                if path.name == "wan_gateway.yaml":
                    self.assertIn(f"(pipeline {prefix}/share/rocebox/pipelines/wan_gateway.yaml)", done.stdout)


if __name__ == "__main__":
    finish.main()
