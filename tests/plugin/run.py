#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds the examples out of tree against an installed rocebox, as a user would, and runs them: a kernel, a program of a
switch, a kind of device, a congestion control, a workload. Wrong tables of each kind are refused."""
import argparse, collections, json, os, pathlib, re, signal, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CAPTURES = HERE.parent / "replay/captures"
CAPTURE = CAPTURES / "rc_write.pcap"
NAKS = CAPTURES / "rc_write_reorder_rx.pcap"
HANGS = 120  # seconds


def run(*words, status=0, **environment):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=600, env={**os.environ, **environment})
    if done.returncode != status:
        sys.exit(f"{' '.join(map(str, words))} {environment}\nexit {done.returncode}, expected {status}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def tshark(path, *fields, only="frame"):
    """A tuple of the fields of each packet."""
    words = [word for field in fields for word in ("-e", field)]
    done = subprocess.run(["tshark", "-r", path, "-o", "ip.check_checksum:TRUE", "-Y", only, "-T", "fields", *words],
                          capture_output=True, text=True, check=True)
    return [tuple(line.split("\t")) for line in done.stdout.splitlines()]


def check_headers(prefix):
    """What installed headers include is installed."""
    include = prefix / "include/rocebox"
    headers = [header for header in include.rglob("*.h") if include / "dpa" not in header.parents]
    assert include / "switch_model/program.h" in headers and include / "nic_model/rate/congestion_control.h" in headers
    for header in headers:
        for named in re.findall(r'^#include "([^"]+)"', header.read_text(), re.M):
            assert (include / named).is_file(), f"{header} includes {named}, which is not installed"
    return headers


def check_device_programs(prefix, folder):
    """A DPA's headers, which are C with a folder of their own, and the programs that are templates stand alone."""
    include = prefix / "include/rocebox/dpa"
    compiler = [os.environ.get("CC", "cc"), "-Wall", "-Wextra", "-Werror", f"-I{include}"]
    headers, programs = list(include.rglob("*.h")), list((prefix / "share/rocebox/dpa").glob("*.c"))
    assert len(headers) > 8 and len(programs) > 3, (headers, programs)
    alone = folder / "alone.c"
    for header in headers:
        alone.write_text(f'#include "{header.relative_to(include)}"\ntypedef int a_file_has_something;\n')
        run(*compiler, "-fsyntax-only", alone)
    for program in programs:
        run(*compiler, "-shared", "-fPIC", program, "-o", folder / f"{program.stem}.dpa.so")


def check_readmes(rocebox, compiler, folder):
    """The components that READMEs print are built as they stand, and are what their text says."""
    for readme, name, option in (("README.md", "count", "limit"), ("switch_model/README.md", "count_naks", "most")):
        (text,) = re.findall(r"^```cpp\n(.*?)^```", (ROOT / readme).read_text(), re.S | re.M)
        source, plugin = folder / "printed.cc", folder / f"printed_{name}.so"
        source.write_text(text)
        run(*compiler, "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", source, "-o", plugin)
        assert re.search(rf"^ +{option}\b", run(rocebox, "kernels", name, "--plugin", plugin), re.M), readme


def check_kernel(rocebox, plugin, folder):
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
    before, after = (tshark(path, "ip.ttl", "ip.checksum.status") for path in (CAPTURE, out))
    assert len(before) == len(after) > 100
    for b, a in zip(before, after):
        assert int(a[0]) == int(b[0]) - 1 and a[1] == "1", (b, a)
    text = run(rocebox, "replay", config, "--plugin", plugin, status=2)
    assert f"already a kernel named `ttl`, from plugin {plugin}" in text, text


MOST = 3


def switch_config(plugin, folder, name, most=MOST, qps=256, feed="", out=True):
    """A switch between the two hosts of the capture."""
    here = tshark(NAKS, "ip.src")[0][0]
    capture = lambda port, sign: (f"  {port}: {{pcap: {{in: {NAKS}, filter: '{sign}src host {here}'{feed}"
                                  + (f", out: {folder}/{name}.{port}.pcap" if out else "") + "}}\n")
    path = folder / f"{name}.yaml"
    path.write_text(f"plugins: {plugin}\n"
                    "devices:\n  tor: {switch: {ports: [a, b], programs: [forward, count_naks], "
                    f"count_naks: {{qps: {qps}, most: {most}}}}}}}\n"
                    "ports:\n" + capture("a", "") + capture("b", "not "))
    return path


def naks_of(*paths):
    return collections.Counter(qp for path in paths for qp, in tshark(path, "infiniband.bth.destqp",
                                                                     only="infiniband.aeth.syndrome.opcode == 3"))


def check_program(rocebox, plugin, folder):
    """In replay and live, judged by what tshark sees on both sides."""
    text = run(rocebox, "kernels", "count_naks", "--plugin", plugin)
    assert "program of switch" in text and "most" in text and "drop_many_naks" in text, text
    told = json.loads(run(rocebox, "kernels", "count_naks", "--json", "--plugin", plugin))
    assert [row["name"] for row in told["options"]] == ["qps", "most"], told

    sent = naks_of(NAKS)
    beyond = sum(max(0, n - MOST) for n in sent.values())
    assert beyond > 0, sent
    sequence = ("infiniband.bth.destqp", "infiniband.bth.psn", "infiniband.bth.opcode")
    for command, feed in (("replay", ""), ("run", ", pace: max")):
        config = switch_config(plugin, folder, command, feed=feed)
        path = folder / "report.json"
        run(rocebox, command, config, "-q", "--json", path, RUNTIME_DIRECTORY=str(folder))
        report = json.loads(path.read_text())
        counters = report["devices"]["tor"]["kernels"]["switch"]["counters"]
        assert counters["drop_many_naks"] == beyond and counters["naks_seen"] == sum(sent.values()), counters
        out = [folder / f"{command}.{port}.pcap" for port in "ab"]
        assert naks_of(*out) == {qp: min(n, MOST) for qp, n in sent.items()}, naks_of(*out)
        came = collections.Counter(tshark(NAKS, *sequence))
        came.subtract(collections.Counter(row for path in out for row in tshark(path, *sequence)))
        assert sum(came.values()) == beyond and min(came.values()) >= 0, came

    # With so few queue pairs only its own stimuli come to its register: without them that would be named as not reached.
    text = run(rocebox, "check", "--strict", switch_config(plugin, folder, "strict", qps=3))
    assert "no access that the hardware could not do" in text and "count_naks" not in text, text
    text = run(rocebox, "check", "--resources", config)
    assert re.search(r"count_naks\b.*\bqps\b", text) and re.search(r"count_naks\b.*\bnaks\b", text), text
    refused = switch_config(plugin, folder, "wrong", most=-1)
    assert re.search(r"wrong.yaml:3:\d+: `most` must be from 0 to", run(rocebox, "check", refused, status=2))


def check_reload(rocebox, plugin, folder):
    """A program's option changes while packets flow; another one's does not."""
    here = {"RUNTIME_DIRECTORY": str(folder)}
    write = lambda **options: switch_config(plugin, folder, "reloaded", feed=", pace: max, loop: 0", out=False, **options)
    config = write(most=2**32 - 1)
    process = subprocess.Popen([rocebox, "run", config], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**os.environ, **here})
    try:
        line = process.stderr.readline()
        while "port(s)" not in line:
            assert line, "the run did not start"
            line = process.stderr.readline()
        write(most=0)
        run(rocebox, "reload", "reloaded", **here)
        end = time.monotonic() + HANGS
        while "drop_many_naks" not in (text := run(rocebox, "top", "--once", "--json", "--interval", "100ms", "reloaded", **here)):
            assert time.monotonic() < end, text
        write(most=0, qps=512)
        text = run(rocebox, "reload", "reloaded", status=2, **here)
        assert "`count_naks.qps` cannot be changed while it runs; only multicast_groups" in text and "count_naks.most" in text, text
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=HANGS)[1]
        assert process.returncode == 0, error
    finally:
        process.kill()
        process.communicate()


def check_device(rocebox, plugin, folder):
    config = folder / "hub.yaml"
    config.write_text(f"plugins: {plugin}\n"
                      "devices: {d: {hub: {ports: [a, b, c]}}}\n"
                      f"ports: {{b: {{pcap: {{in: {CAPTURE}}}}}}}\n"
                      "expect: [d.b.rx_packets > 100, d.a.tx_packets == d.b.rx_packets, d.c.tx_packets == d.b.rx_packets,\n"
                      "         d.b.tx_packets == 0]\n")
    run(rocebox, "replay", config)
    assert "kind: hub" in run(rocebox, "check", config)
    wrong = folder / "hub_wrong.yaml"
    wrong.write_text(f"plugins: {plugin}\ndevices: {{d: {{hub: {{ports: [a]}}}}}}\n")
    text = run(rocebox, "check", wrong, status=2)
    assert "hub_wrong.yaml:2:28: `ports` must name two at least" in text, text
    assert "two-sided" not in run(rocebox, "kernels", "hub", "--plugin", plugin)


def check_congestion_control(rocebox, plugin, folder):
    """Each NAK that its NIC gets halves the rate; without it the same transfer takes less time."""
    text = run(rocebox, "kernels", "halve_at_naks", "--plugin", plugin)
    assert "congestion_control: halve_at_naks, halve_at_naks: {OPTION: VALUE}" in text, text
    assert re.search(r"^ +step\b", text, re.M) and "halvings" in text, text
    assert "halve_at_naks" in run(rocebox, "kernels", "nic", "--plugin", plugin)
    config, path = folder / "halve.yaml", folder / "halve.json"

    def simulated(control):
        config.write_text(f"plugins: {plugin}\n"
                          "topology:\n"
                          "  back_to_back: {host_rate: 10Gbps}\n"
                          f"  hosts: {{nic: {{congestion_control: {control}}}}}\n"
                          "  links: {loss: 1%}\n"
                          "workloads: {w: {type: write_bw, hosts: [h0, h1], size: 1MB, iters: 8}}\n")
        run(rocebox, "sim", config, "-q", "--json", path)
        report = json.loads(path.read_text())
        return report, report["devices"]["h0"]["kernels"]["nic"]["counters"]

    report, counters = simulated("halve_at_naks")
    assert counters["halvings"] == counters["packet_seq_err"] > 10, counters
    free, counters = simulated("none")
    assert "halvings" not in counters and counters["packet_seq_err"] > 10, counters
    # A rate that 1% loss has halved again and again takes far longer than go-back-N at line rate.
    slow, fast = (each["workloads"]["w"]["duration_ns"] for each in (report, free))
    assert slow > 2 * fast > 0, (slow, fast)
    text = run(rocebox, "check", "--plugin", plugin, config.with_name("halve.yaml"), status=2)
    assert "already a congestion_control named `halve_at_naks`" in text, text
    config.write_text(f"plugins: {plugin}\ndevices: {{n: {{nic: {{congestion_control: halve_at_naks}}}}}}\n")
    text = run(rocebox, "check", config, status=2)
    assert "halve.yaml:2:41: `congestion_control` needs the port's `rate:`" in text, text


def check_workload(rocebox, plugin, folder):
    """Questions and answers over a link, whose times are what arithmetic gives; over one that loses some all come, too."""
    text = run(rocebox, "kernels", "ask", "--plugin", plugin)
    assert "questions and answers" in text and re.search(r"^ +count\b", text, re.M), text
    config, path = folder / "ask.yaml", folder / "ask.json"

    def simulated(loss):
        config.write_text(f"plugins: {plugin}\n"
                          "topology:\n"
                          "  back_to_back: {host_rate: 10Gbps, host_delay: 5us}\n"
                          "  hosts: {nic: {}}\n"
                          f"  links: {{loss: {loss}}}\n"
                          "workloads: {questions: {type: ask, hosts: [h0, h1], count: 200, size: 1000}}\n")
        run(rocebox, "sim", config, "-q", "--json", path)
        report = json.loads(path.read_text())
        row = report["workloads"]["questions"]
        assert (row["details"]["answers"], row["details"]["error"], row["transfers_done"]) == (200, "", 200), row
        return report, row["details"]

    report, times = simulated("0%")
    counters = [report["devices"][host]["kernels"]["nic"]["counters"] for host in ("h0", "h1")]
    assert [each["rx_send_requests"] for each in counters] == [200, 200], counters
    # There and back: 5 us each, an ACK of 62 bytes and the message of 1058, each with 24 more on the wire.
    expected = 2 * (5000 + (62 + 24 + 1058 + 24) * 8 / 10)
    assert abs(times["t_typical_ns"] - expected) < 5, (times, expected)
    assert simulated("2%")[1]["t_max_ns"] > 1_000_000, "a timeout"
    written = config.read_text()
    for old, new, place, why in (("count: 200", "count: 0", 6, "`count` must be from 1 to"), ("[h0, h1]", "[h0]", 6, "hosts")):
        config.write_text(written.replace(old, new))
        text = run(rocebox, "check", config, status=2)
        assert f"ask.yaml:{place}:" in text and why in text, text


def check_refusals(rocebox, prefix, folder):
    wrong = folder / "wrong.so"
    run("c++", "-std=c++20", "-shared", "-fPIC", f"-I{prefix}/include/rocebox", HERE / "refused.cc", "-o", wrong)

    def refused(table, kind="kernel", name=""):
        text = run(rocebox, "kernels", "--plugin", wrong, status=2, TABLE=table, KIND=kind, NAME=name)
        assert str(wrong) in text, text
        return text

    for kind in ("kernel", "device", "program", "congestion_control"):
        for table, name in (("abi", "first"), ("second_abi", "second")):
            text = refused(table, kind)
            theirs, ours = (int(number) for number in re.findall(r"ABI (\d+)", text))
            assert theirs == ours + 1 and f"`{name}`" in text, text
        for other, name in (("kernel", "link"), ("device", "switch"), ("program", "acl"), ("congestion_control", "dcqcn")):
            assert f"already a {other} named `{name}`, from the in-tree registry" in refused("name", kind, name)
        assert f"already a {kind} named `first`, from plugin {wrong}" in refused("name", kind, "first")
        assert "is named ``, which is no name" in refused("name", kind, "")
        assert "is named `a b`, which is no name" in refused("name", kind, "a b")
        for missing in ("kind", "summary", "options"):
            assert f"the row of `second` has no {missing}" in refused(f"no_{missing}", kind)
        assert "the options function of `second` makes none" in refused("null_options", kind)
        assert "`second` runs in `swich`, and there is no component of that name" in refused("host", kind, "swich")
        assert "`second` runs in `acl`, which runs in `switch`" in refused("host", kind, "acl")
        assert "has no host_options function" in refused("no_host_options", kind)
        assert f"the {kind} `first` has options of another kind" in refused("right", kind)
        assert "is named `--json`, which is no name" in refused("name", kind, "--json")
    assert "`first` is of kind `kernal`, which nothing asks for; known: kernel, device, workload, model, congestion_control, program" in refused("right", "kernal")
    for table in ("null", "empty"):
        assert "rocebox_components() has no component" in refused(table)

    symbols = folder / "symbols.so"
    run("c++", "-shared", "-fPIC", "-x", "c++", "/dev/null", "-o", symbols)
    assert "does not export rocebox_components()" in run(rocebox, "kernels", "--plugin", symbols, status=2)
    assert "cannot load plugin" in run(rocebox, "kernels", "--plugin", folder / "ttl.yaml", status=2)
    assert "none.so" in run(rocebox, "kernels", "--plugin", folder / "none.so", status=2)


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
        headers = check_headers(prefix)
        run("cmake", "-G", "Ninja", "-S", HERE, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror {args.cmake_flags}", "-DCMAKE_BUILD_TYPE=Release")
        run("cmake", "--build", build)
        # All installed headers in one file, with the flags that a plugin has.
        every = folder / "every.cc"
        every.write_text("".join(f'#include "{header.relative_to(prefix / "include/rocebox")}"\n' for header in sorted(headers)))
        flags = subprocess.run(["pkg-config", "--cflags", "libdpdk"], capture_output=True, text=True).stdout.split()
        compiler = [os.environ.get("CXX", "c++"), "-std=c++20", *(re.sub("^-I", "-isystem", flag) for flag in flags), f"-I{prefix}/include/rocebox"]
        run(*compiler, "-fsyntax-only", every)
        check_device_programs(prefix, folder)

        rocebox = prefix / "bin/rocebox"
        check_readmes(rocebox, [*compiler, *args.cmake_flags.split()], folder)
        check_kernel(rocebox, build / "ttl.so", folder)
        check_program(rocebox, build / "count_naks.so", folder)
        check_reload(rocebox, build / "count_naks.so", folder)
        check_device(rocebox, build / "hub.so", folder)
        check_congestion_control(rocebox, build / "halve_at_naks.so", folder)
        check_workload(rocebox, build / "ask.so", folder)
        check_refusals(rocebox, prefix, folder)
    print("plugin: a kernel, a program, a kind of device, a congestion control and a workload were built out of tree and ran; wrong tables were refused")


main()
