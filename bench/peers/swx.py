# SPDX-License-Identifier: BSD-3-Clause
"""The forwarder `swx_forward` (DPDK's SWX pipeline): its program, its tables, and how it is run.
What DPDK generates from the specification includes two headers that libdpdk-dev has not. They are taken from DPDK_SOURCE, a tree
of DPDK's sources of the installed version, or else fetched by apt-get (Debian's source package, 15 MB) and kept in the build
folder."""
import json
import os
import pathlib
import re
import subprocess
import tempfile

import forwarders

HEADERS = ("rte_swx_pipeline_internal.h", "rte_swx_pipeline_spec.h")
SPEC = pathlib.Path(__file__).resolve().parent / "swx_forward.spec"
# As DPDK's example `pipeline` has it, and for this CPU. Its generated code reads fields of one header as words of several widths.
COMPILER = ["gcc", "-O3", "-march=native", "-fno-strict-aliasing", "-fPIC", "-shared", "-w", "-DALLOW_EXPERIMENTAL_API"]


class Unavailable(Exception):
    """Why the library cannot be made here."""


def command(words, folder, timeout_s=300, env=None):
    """Its output; Unavailable with the last of it where it fails."""
    try:
        result = subprocess.run(words, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL, timeout=timeout_s, env={**os.environ, **(env or {})})
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{words[0]}: {error}") from error
    if result.returncode != 0:
        raise Unavailable(f"{' '.join(words[:1])}: {result.stdout.strip()[-300:]}")
    return result.stdout


def write_source_lists(folder):
    """The system's lists of packages, asking for sources, as files in `folder`. The system's own are left alone."""
    etc = pathlib.Path("/etc/apt")
    for path in [etc / "sources.list", *etc.glob("sources.list.d/*.list"), *etc.glob("sources.list.d/*.sources")]:
        if not path.exists():
            continue
        text = re.sub(r"^deb\b(?!-src)", "deb-src", path.read_text(), flags=re.MULTILINE)
        (folder / path.name).write_text(re.sub(r"^Types:.*", "Types: deb-src", text, flags=re.MULTILINE))


def fetch_headers(folder):
    """The headers, from the source package of the installed version, into `folder`."""
    version = command(["dpkg-query", "-W", "-f", "${source:Version}", "librte-pipeline23"], ".").strip()
    with tempfile.TemporaryDirectory(prefix="rocebox-swx-") as work:
        for name in ("sources", "lists/partial", "cache/archives/partial"):
            os.makedirs(f"{work}/{name}")
        write_source_lists(pathlib.Path(work) / "sources")
        apt = ["apt-get", "-qq", "-o", "Dir::Etc::sourcelist=/dev/null", "-o", f"Dir::Etc::sourceparts={work}/sources",
               "-o", f"Dir::State::lists={work}/lists", "-o", f"Dir::Cache={work}/cache"]
        command([*apt, "update"], work)
        command([*apt, "--download-only", "source", f"dpdk={version}"], work)
        archives = list(pathlib.Path(work).glob("dpdk_*.orig.tar.*"))
        if not archives:
            raise Unavailable(f"apt-get brought no source of dpdk {version}")
        command(["tar", "-xf", str(archives[0]), "--strip-components=3", "--wildcards", "-C", str(folder),
                 *(f"*/lib/pipeline/{name}" for name in HEADERS)], work)


def headers(build):
    """The folder with SWX's two headers."""
    source = os.environ.get("DPDK_SOURCE")
    folder = pathlib.Path(source) / "lib/pipeline" if source else pathlib.Path(build) / "bench/swx"
    if not source and not all((folder / name).exists() for name in HEADERS):
        folder.mkdir(exist_ok=True)
        fetch_headers(folder)
    missing = [name for name in HEADERS if not (folder / name).exists()]
    if missing:
        raise Unavailable(f"{folder} has no {missing[0]}")
    return folder


def make_library(build, folder):
    """From swx_forward.spec by DPDK's generator to a library in `folder`: its path. Unavailable says why there is none."""
    include = headers(build)
    code, library = f"{folder}/swx_forward.c", f"{folder}/swx_forward.so"
    with forwarders.eal_folder() as place:
        command([f"{build}/bench/swx_forward", "codegen", str(SPEC), code, "--no-huge", "-m", "64", "--no-pci"], folder, env=place)
    flags = command(["pkg-config", "--cflags", "libdpdk"], folder).split()
    command([*COMPILER, f"-I{include}", *flags, "-o", library, code], folder)
    return library


def program(build, folder):
    """What `swx_forward` is to run, and in which of SWX's forms that is: a library where one can be made, else the specification."""
    try:
        return make_library(build, folder), "compiled"
    except Unavailable as why:
        return str(SPEC), f"interpreted, as its library could not be made: {why}"


def tables(routes, router_mac):
    """The lines of swx_forward's tables. `routes`: (IPv4 prefix, its length, [(port number, MAC address), ...])."""
    def number(mac):
        return "0x" + mac.replace(":", "")
    groups, entries, hops = [], [], 0
    for group, (prefix, length, via) in enumerate(routes):
        address = int.from_bytes(map(int, prefix.split(".")), "big")
        mask = 0xFFFFFFFF << 32 - length & 0xFFFFFFFF
        groups.append("group " + " ".join(str(hops + i) for i in range(len(via))))
        entries.append(f"table routes match 0x{address:08x}/0x{mask:08x} action route group {group}")
        for port, mac in via:
            entries.append(f"table next_hops match {hops} action next_hop destination {number(mac)} "
                           f"source {number(router_mac)} port {port}")
            hops += 1
    return "\n".join(groups + entries) + "\n"


def run(build, program_file, folder, table_text, vdevs, core, seconds, packets, env=None):
    """Packets per second of its core, and what it counted: {"rx_packets": N, "tx_packets": [of each port]}."""
    path = pathlib.Path(folder) / "swx.tables"
    path.write_text(table_text)
    words = [f"{build}/bench/swx_forward", "run", program_file, str(path), str(packets), str(seconds), *forwarders.eal(vdevs, core)]
    with forwarders.eal_folder() as place:
        status, output, cpu_s = forwarders.run_measured(words, env={**place, **(env or {})})
    if status != 0:
        forwarders.fail(output[-500:])
    counted = json.loads(output.strip().splitlines()[-1])
    return counted["rx_packets"] / cpu_s, counted
