# SPDX-License-Identifier: BSD-3-Clause
"""What the figures of SCR share: closed forms, and rates over time as a policy gave them."""


def jain(rates):
    """Jain's index: (sum x)^2 / (n sum x^2)."""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates)) if any(rates) else 0.0


def max_min(demands, capacity):
    """The max-min allocation of flows with these demands (None: without bound)."""
    shares = [None] * len(demands)
    while True:
        rest = capacity - sum(share for share in shares if share is not None)
        open_ones = [i for i, share in enumerate(shares) if share is None]
        if not open_ones:
            return shares
        level = rest / len(open_ones)
        small = [i for i in open_ones if demands[i] is not None and demands[i] <= level]
        for i in small:
            shares[i] = demands[i]
        if not small:
            for i in open_ones:
                shares[i] = level
            return shares


def kernel(run, device):
    """What the report has of the NIC of a device."""
    return next(iter(run.report["devices"][device]["kernels"].values()))


def changes(run, device):
    """(ns, queue pair, bits per second) as the policy's rates took effect."""
    return [(row["at_ns"], row["qpn"], row["rate_bits_per_second"]) for row in kernel(run, device)["scr_changes"]]


def gbps(run, name):
    return run.workload(name)["goodput_bits_per_second"] / 1e9
