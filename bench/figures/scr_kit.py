# SPDX-License-Identifier: BSD-3-Clause
"""What the figures of SCR share: closed forms, and rates over time as a policy gave them."""


def jain(rates):
    """Jain's index: (sum x)^2 / (n sum x^2)."""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates)) if any(rates) else 0.0


def explain(what, paper, ours, why, unit=""):
    """A number of the paper's text beside ours; where they are more than 10 points apart, why."""
    points = 100 * (ours / paper - 1)
    print(f"{what}: paper {paper:g}{unit}, ours {ours:.3g}{unit} ({points:+.0f}%)")
    if abs(points) > 10:
        print(f"  because {why}" if why else "  NOT explained")


def kernel(run, device):
    """What the report has of the NIC of a device."""
    return next(iter(run.report["devices"][device]["kernels"].values()))


def changes(run, device):
    """(ns, queue pair, bits per second) as the policy's rates took effect."""
    return [(row["at_ns"], row["qpn"], row["rate_bits_per_second"]) for row in kernel(run, device)["scr_changes"]]


def gbps(run, name):
    return run.workload(name)["goodput_bits_per_second"] / 1e9
