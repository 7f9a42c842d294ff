#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds the example plugin out of tree against an installed rocebox, as a user would, and runs it."""
import argparse, pathlib, re, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
CAPTURE = HERE.parent / "replay/captures/rc_write.pcap"


def run(*words, status=0):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode != status:
        sys.exit(f"{' '.join(map(str, words))}\nexit {done.returncode}, expected {status}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, help="build folder of rocebox")
    parser.add_argument("--cmake-flags", default="", help="flags for the plugin's compiler")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        prefix, build = folder / "prefix", folder / "build"
        run("cmake", "--install", args.build, "--prefix", prefix)
        # The prefix is moved, to show that nothing points back into the source or build tree.
        prefix = prefix.rename(folder / "moved")
        run("cmake", "-G", "Ninja", "-S", HERE, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror {args.cmake_flags}", "-DCMAKE_BUILD_TYPE=Release")
        run("cmake", "--build", build)
        rocebox, plugin = prefix / "bin/rocebox", build / "my_kernel.so"

        text = run(rocebox, "kernels", "ttl", "--plugin", plugin)
        assert "lowers the TTL" in text and "floor" in text and "drop_expired" in text, text
        config = folder / "ttl.yaml"
        config.write_text(f"plugins: {plugin}\n"
                          "devices: {d: {path: a <-> ttl <-> b}}\n"
                          f"ports: {{a: {{pcap: {{in: {CAPTURE}}}}}}}\n"
                          "expect: [d.a.rx_packets == d.b.tx_packets, d.ttl.drop_expired == 0]\n")
        out = folder / "out.pcap"
        run(rocebox, "replay", config, "--out", f"b={out}")
        # tshark says whether every TTL fell by one and every checksum is right.
        def fields(path):
            return run("tshark", "-r", path, "-o", "ip.check_checksum:TRUE", "-T", "fields", "-e", "ip.ttl",
                       "-e", "ip.checksum.status").replace("Running as user \"root\" and group \"root\". This could be dangerous.\n", "").splitlines()
        before, after = fields(CAPTURE), fields(out)
        assert len(before) == len(after) > 100
        for b, a in zip(before, after):
            assert int(a.split()[0]) == int(b.split()[0]) - 1 and a.split()[1] == "1", (b, a)
        text = run(rocebox, "replay", config, "--plugin", plugin, status=2)
        assert "already a kernel named `ttl`" in text, text

        wrong = folder / "wrong.so"
        flags = subprocess.run(["pkg-config", "--cflags", "libdpdk"], capture_output=True, text=True).stdout.split()
        run("c++", "-std=c++20", "-shared", "-fPIC", *flags, f"-I{prefix}/include/rocebox", HERE / "wrong_abi.cc", "-o", wrong)
        text = run(rocebox, "kernels", "--plugin", wrong, status=2)
        theirs, ours = (int(number) for number in re.findall(r"ABI (\d+)", text))
        assert theirs == ours + 1, text
        text = run(rocebox, "kernels", "--plugin", config, status=2)
        assert "cannot load plugin" in text, text
        text = run(rocebox, "kernels", "--plugin", folder / "none.so", status=2)
        assert "none.so" in text, text
    print("plugin: built out of tree, ran, and wrong ones were refused")


main()
