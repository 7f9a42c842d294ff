# SPDX-License-Identifier: BSD-3-Clause
"""Ports of switches that one block crosses on its way, in trees of switches: what the traffic of collectives comes to, payload
alone. A tree is given by its switches above each host: one tuple a host, from its own switch upwards; the last is the top."""


def leaf_spine(hosts, leaves):
    """Hosts in the order of racks; the first racks have one more where hosts do not go into each alike."""
    return [(leaf,) for leaf in range(leaves) for _ in range(hosts // leaves + (leaf < hosts % leaves))]


def fat_tree(k, pods):
    half = k // 2
    return [((pod, edge), pod) for pod in range(pods) for edge in range(half) for _ in range(half)]


def unicast_ports(tree, a, b):
    """Ports that receive and transmit one packet from a host to another, by the tier that they belong to."""
    ports = {}
    for tier, (mine, other) in enumerate(zip(tree[a], tree[b])):
        ports[tier] = 1 if mine == other else 2
        if mine == other:
            return ports
    ports[len(tree[a])] = 1
    return ports


def multicast_ports(tree):
    """(ports that receive, ports that transmit) a packet of one host to all others: a switch receives it once and
    transmits it to each child but the one it came from, and upwards on the sender's own way."""
    received, tiers = 0, len(tree[0])
    for tier in range(tiers + 1):
        switches = {way[tier] for way in tree} if tier < tiers else {None}
        received += len(switches)
    below = len(tree) + sum(len({way[tier] for way in tree}) for tier in range(tiers))
    # Each host and switch below the top gets it from above, but for those on the sender's way; of these each switch sends
    # it up.
    return received, below - 1


def algorithms(tree, block):
    """{name: (bytes received, bytes transmitted)} over all switch ports, payload alone, of an Allgather of `block` a rank."""
    hosts = len(tree)
    ring = sum(sum(unicast_ports(tree, a, (a + 1) % hosts).values()) for a in range(hosts)) * (hosts - 1)
    # by pairs that are alike: hosts of one switch, of one switch above, ...
    linear = sum(sum(unicast_ports(tree, a, b).values()) for a in range(hosts) for b in range(hosts) if a != b)
    received, transmitted = multicast_ports(tree)
    return {"multicast": (hosts * received * block, hosts * transmitted * block), "ring": (ring * block, ring * block),
            "linear": (linear * block, linear * block)}


def broadcasts(tree, message):
    """The same of a Broadcast of `message` bytes from the first host. k-nomial, of k = 2: a rank's parent is the rank without its
    lowest bit; binary: half of the rank before it."""
    def down(parent):
        ports = sum(sum(unicast_ports(tree, parent(rank), rank).values()) for rank in range(1, len(tree)))
        return ports * message, ports * message

    received, transmitted = multicast_ports(tree)
    return {"cast": (received * message, transmitted * message), "k_nomial": down(lambda rank: rank & (rank - 1)),
            "binary_tree": down(lambda rank: (rank - 1) // 2)}
