# SPDX-License-Identifier: BSD-3-Clause
"""
An endpoint of dpdk-telemetry-exporter.py (DPDK 23.11 and later) for live runs of rocebox:

    dpdk-telemetry-exporter.py -p /usr/share/dpdk/telemetry-endpoints -e rocebox \\
                               -s /run/dpdk/rocebox-NAME/dpdk_telemetry.v2

What is counted differs from kernel to kernel, so a counter's own name is the label `counter`.
"""

INFO = {
    "elapsed_seconds": ("Time since packets began to flow.", "gauge"),
    "pool_in_use": ("Packets that exist now.", "gauge"),
    "pool_idle": ("Packets in use by the ports alone, before the first arrived.", "gauge"),
    "shard_busy_seconds": ("Time of a shard in loops that found something to do.", "counter"),
    "port_link_down_events": ("Times that the link of a port went down, or its interface away.", "counter"),
    "port_up": ("Whether the link of a port is up.", "gauge"),
    "port_packets": ("Packets of a port, by counter: taken from it, given to it, or lost at it.", "counter"),
    "device_port": ("Packets and bytes of a device's port, by counter.", "counter"),
    "device_counter": ("What a device counts.", "counter"),
    "device_held": ("Packets that a device holds now.", "gauge"),
    "kernel_counter": ("What a kernel counts.", "counter"),
    "kernel_level": ("High-water marks of a kernel.", "gauge"),
    "link_counter": ("What a link counts.", "counter"),
    "link_level": ("High-water marks of a link, and packets that it holds now.", "gauge"),
    "latency_seconds": ("Time that a sample of packets took, up to their leaving at a port or in a device, kernel or "
                        "link, by quantile.", "gauge"),
}
QUANTILES = (("p50_ns", "0.5"), ("p99_ns", "0.99"), ("p999_ns", "0.999"))


def info():
    """Every metric with its description and type."""
    return INFO


def names(sock, command):
    """All names that a list has; they come in pages."""
    found = []
    while True:
        page = sock.cmd(command, len(found))
        found += page["names"]
        if not page["names"] or len(found) >= page["count"]:
            return found


def latency(answer, labels, prefix=""):
    return [("latency_seconds", answer[prefix + key] / 1e9, {**labels, "quantile": quantile})
            for key, quantile in QUANTILES if answer.get(prefix + key) is not None]


def run_metrics(sock):
    run = sock.cmd("/rocebox/run")
    values = [("elapsed_seconds", run["elapsed_ns"] / 1e9, {}), ("pool_in_use", run["pool_in_use"], {}),
              ("pool_idle", run["pool_idle"], {})]
    for shard in run["shards"].values():
        values.append(("shard_busy_seconds", shard["busy_ns"] / 1e9, {"shard": shard["shard"], "core": shard["core"]}))
    return values


def port_metrics(sock):
    values = []
    for name in names(sock, "/rocebox/ports"):
        answer = sock.cmd("/rocebox/port", name)
        device, _, port = name.rpartition(".")
        labels = {"device": device, "port": port}
        for counter, value in answer["device"].items():
            values.append(("device_port", value, {**labels, "counter": counter}))
        live = answer.get("live")
        if live is None:  # not bound to anything
            continue
        values.append(("port_up", int(live["link"] == "up"), labels))
        for counter, value in live.items():
            if counter == "link_down_events":
                values.append(("port_link_down_events", value, labels))
            elif isinstance(value, int) and not counter.endswith("_ns"):
                values.append(("port_packets", value, {**labels, "counter": counter}))
        values += latency(live, {**labels, "of": "port"}, "latency_")
    return values


def device_metrics(sock):
    values = []
    for name in names(sock, "/rocebox/devices"):
        answer = sock.cmd("/rocebox/device", name)
        for counter, value in answer["counters"].items():
            if counter in answer["kinds"]:  # the others are counts
                values.append(("device_held", value, {"device": name}))
            else:
                values.append(("device_counter", value, {"device": name, "counter": counter}))
        values += latency(answer["latency"], {"device": name, "of": "device"})
    return values


def part_metrics(sock, part):
    """Of kernels or links."""
    values = []
    for name in names(sock, f"/rocebox/{part}s"):
        answer = sock.cmd(f"/rocebox/{part}", name)
        device, _, kernel = name.rpartition(".")
        labels = {"device": device, "kernel": kernel} if part == "kernel" else {"link": name}
        for counter, value in answer.get("counters", {}).items():
            kind = "level" if counter in answer["kinds"] else "counter"
            values.append((f"{part}_{kind}", value, {**labels, "counter": counter}))
        values += latency(answer["latency"], {**labels, "of": part})
    return values


def metrics(sock):
    """What a run counts now, as (name, value, labels)."""
    return run_metrics(sock) + port_metrics(sock) + device_metrics(sock) + part_metrics(sock, "kernel") + \
        part_metrics(sock, "link")
