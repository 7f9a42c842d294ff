-- SPDX-License-Identifier: BSD-3-Clause
-- The repair and negotiation packets of the kernel `lowar`, for rocebox.lua: opcode 0x1F on RoCEv2's UDP port. The format
-- is that of kernels/lowar/README.md, and offsets here are its own, from the byte behind UDP.
return function(rocebox)
  local OPCODE, HEADER_BYTES, PREFIX_BYTES, VERSION = 0x1f, 24, 12, 3
  local REPAIR, NEGOTIATION = 0x5a, 0xa5
  local R_MAX, C_MAX, TRANSPORT_MIN = 256, 32, 16
  local PSN_SPAN = 2 ^ 24
  local TYPES = {[REPAIR] = "Repair", [NEGOTIATION] = "Negotiation"}
  local REQUEST = 2
  local KINDS = {[1] = "Announce", [REQUEST] = "Request", [3] = "Status"}

  local proto = Proto("lowar", "LoWAR")
  local field = {
    opcode = ProtoField.uint8("lowar.opcode", "Opcode", base.HEX),
    qpn = ProtoField.uint24("lowar.qpn", "Destination QPN", base.HEX),
    type = ProtoField.uint8("lowar.type", "Type", base.HEX, TYPES),
    version = ProtoField.uint8("lowar.version", "Version", base.DEC, nil, 0xf0),
    flags = ProtoField.uint8("lowar.flags", "Flags", base.HEX, nil, 0x0f),
    has_first = ProtoField.bool("lowar.flags.has_first", "has_First", 8, nil, 0x01),
    has_last = ProtoField.bool("lowar.flags.has_last", "has_Last", 8, nil, 0x02),
    responses = ProtoField.bool("lowar.flags.responses", "READ responses", 8, nil, 0x04),
    anew = ProtoField.bool("lowar.flags.anew", "Does not continue the block before", 8, nil, 0x08),
    r = ProtoField.uint16("lowar.r", "r", base.DEC, nil, nil, "Data packets of a whole coding block"),
    c = ProtoField.uint8("lowar.c", "c", base.DEC, nil, nil, "Repair packets of a coding block"),
    base_psn = ProtoField.uint24("lowar.bpsn", "bPSN", base.DEC, nil, nil, "PSN of the block's first data packet"),
    isn = ProtoField.uint8("lowar.isn", "ISN", base.DEC, nil, nil, "Which of the block's repair packets, from 0"),
    kind = ProtoField.uint8("lowar.kind", "Kind", base.DEC, KINDS),
    reserved = ProtoField.bytes("lowar.reserved", "Reserved"),
    sent = ProtoField.uint16("lowar.sent", "Sent before", base.DEC, nil, nil,
                             "Data packets of the stream before bPSN, modulo 2^8 in a repair packet, else 2^16"),
    packets = ProtoField.uint16("lowar.packets", "Data packets of the block"),
    last_length = ProtoField.uint16("lowar.last_length", "Last length", base.DEC, nil, nil,
                                    "Bytes of the message's last transport packet, BTH up to and with its ICRC"),
    hop_sum = ProtoField.uint16("lowar.hop_sum", "Hop sum", base.HEX),
    set_sum = ProtoField.uint32("lowar.set_sum", "Set sum", base.HEX),
    negotiation = ProtoField.bytes("lowar.negotiation", "Bytes 14 to 23"),
    serial = ProtoField.uint16("lowar.serial", "Serial number", base.DEC, nil, nil,
                               "Of a request; from the sender: of the request that its (r, c) comes from"),
    token = ProtoField.uint32("lowar.token", "Token", base.HEX, nil, nil, "The sender's; 0: its (r, c) is fixed"),
    covered = ProtoField.uint16("lowar.covered", "Data packets covered"),
    covered_psn = ProtoField.uint24("lowar.covered_psn", "Covers PSN"),
    coded = ProtoField.bytes("lowar.coded", "Coded transport packet"),
    coded_length = ProtoField.uint16("lowar.coded.length", "XOR of transport lengths", base.HEX),
    coded_port = ProtoField.uint16("lowar.coded.udp_srcport", "XOR of UDP source ports", base.HEX),
    coded_ip = ProtoField.uint32("lowar.coded.ip", "XOR of IPv4 identification and fragment word, or IPv6 flow words",
                                 base.HEX),
    coded_ttl = ProtoField.uint8("lowar.coded.ttl", "XOR of TTLs", base.HEX),
    coded_tos = ProtoField.uint8("lowar.coded.tos", "XOR of ToS", base.HEX),
    coded_checksum = ProtoField.uint16("lowar.coded.udp_checksum", "XOR of UDP checksums", base.HEX),
  }
  proto.fields = field
  local impossible = ProtoExpert.new("lowar.impossible", "A field that no encoder writes", expert.group.MALFORMED,
                                     expert.severity.WARN)
  proto.experts = {impossible}

  local function complain(tree, wrong, text)
    if wrong then tree:add_proto_expert_info(impossible, text) end
  end

  local function show_covered(tree, header, packets, c, isn)
    local psn, psns = header(9, 3):uint(), {}
    for at = isn, packets - 1, math.max(c, 1) do table.insert(psns, (psn + at) % PSN_SPAN) end
    tree:add(field.covered, header(9, 3), #psns):set_generated()
    for _, covered in ipairs(psns) do tree:add(field.covered_psn, header(9, 3), covered):set_generated() end
    return psns
  end

  local function show_coded(tree, coded)
    local prefix = coded(0, PREFIX_BYTES)
    tree:add(field.coded_length, prefix(0, 2))
    tree:add(field.coded_port, prefix(2, 2))
    tree:add(field.coded_ip, prefix(4, 4))
    tree:add(field.coded_ttl, prefix(8, 1))
    tree:add(field.coded_tos, prefix(9, 1))
    tree:add(field.coded_checksum, prefix(10, 2))
    if coded:len() > PREFIX_BYTES then tree:add(field.coded, coded(PREFIX_BYTES)) end
  end

  local function show_repair(pinfo, tree, header, rest)
    local r, c = header(6, 2):uint(), header(8, 1):uint()
    local isn, packets = rest(0, 1):uint(), rest(2, 2):uint()
    local item = tree:add(field.isn, rest(0, 1))
    complain(item, isn >= math.min(c, packets), "ISN must be below c and below the number of packets")
    tree:add(field.sent, rest(1, 1))
    complain(tree:add(field.packets, rest(2, 2)), packets < 1 or packets > r, "A block has 1 to r packets")
    local has_last = header(5, 1):bitfield(6, 1) == 1
    item = tree:add(field.last_length, rest(4, 2))
    complain(item, (rest(4, 2):uint() ~= 0) ~= has_last, "The last length is not 0 where has_Last is set, and only there")
    complain(item, has_last and rest(4, 2):uint() < TRANSPORT_MIN, "The last length is that of a BTH and an ICRC, or more")
    local coded_bytes = rest:len() - (HEADER_BYTES - 12)
    -- The message's last packet is in the share whose number it has; the other shares' images may be shorter.
    local covers_last = (packets - 1) % math.max(c, 1) == isn
    complain(item, has_last and covers_last and rest(4, 2):uint() > coded_bytes - PREFIX_BYTES,
             "The last length is at most that of the coded packet")
    tree:add(field.hop_sum, rest(6, 2))
    tree:add(field.set_sum, rest(8, 4))
    local psns = show_covered(tree, header, packets, c, isn)
    local text = string.format(" repair %d of %d", isn + 1, math.min(c, packets))
    if #psns > 0 then text = text .. string.format(", %d packets, PSN %d to %d", #psns, psns[1], psns[#psns]) end
    pinfo.cols.info:append(text)
    complain(tree, coded_bytes < PREFIX_BYTES + TRANSPORT_MIN, "Too short for a coded packet")
    if coded_bytes >= PREFIX_BYTES then show_coded(tree, rest(HEADER_BYTES - 12)) end
  end

  local function show_negotiation(pinfo, tree, header, rest)
    local kind = rest(0, 1):uint()
    complain(tree:add(field.kind, rest(0, 1)), not KINDS[kind], "Unknown kind")
    local flags = header(5, 1)
    complain(tree, flags:bitfield(4, 1) + flags:bitfield(6, 2) ~= 0, "A negotiation packet has no flag but that of READ responses")
    complain(tree, rest:len() ~= HEADER_BYTES - 12, "A negotiation packet has 24 bytes and the ICRC")
    complain(tree:add(field.reserved, rest(1, 1)), rest(1, 1):uint() ~= 0, "Reserved must be 0")
    local data = tree:add(field.negotiation, rest(2, 10))
    data:add(field.serial, rest(2, 2))
    complain(data:add(field.sent, rest(4, 2)), kind == REQUEST and rest(4, 2):uint() ~= 0, "A request counts no packets")
    complain(data:add(field.reserved, rest(6, 2)), rest(6, 2):uint() ~= 0, "Reserved must be 0")
    data:add(field.token, rest(8, 4))
    local r, c = header(6, 2):uint(), header(8, 1):uint()
    local coding = r == 0 and c == 0 and "uncoded" or string.format("r=%d c=%d", r, c)
    pinfo.cols.info:append(string.format(" %s %s from PSN %d", KINDS[kind] or "kind " .. kind, coding, header(9, 3):uint()))
  end

  -- `header` is what rocebox.lua takes for the BTH: bytes 0 to 11; `rest` goes on from byte 12 up to the ICRC.
  local function dissect(rest, pinfo, parent, packet)
    local header = packet.header
    local tree = parent:add(proto, header)
    tree:add(field.opcode, header(0, 1))
    tree:add(field.qpn, header(1, 3))
    local type = header(4, 1):uint()
    complain(tree:add(field.type, header(4, 1)), not TYPES[type], "Unknown type")
    local version = header(5, 1):bitfield(0, 4)
    complain(tree:add(field.version, header(5, 1)), version ~= VERSION, "Unknown version")
    local flags = tree:add(field.flags, header(5, 1))
    for _, flag in ipairs{field.has_first, field.has_last, field.responses, field.anew} do flags:add(flag, header(5, 1)) end
    local r, c = header(6, 2):uint(), header(8, 1):uint()
    local uncoded = type == NEGOTIATION and r == 0 and c == 0
    complain(tree:add(field.r, header(6, 2)), (r < 1 or r > R_MAX) and not uncoded, "r must be from 1 to 256")
    complain(tree:add(field.c, header(8, 1)), (c < 1 or c > r or c > C_MAX) and not uncoded, "c must be from 1 to r and 32")
    tree:add(field.base_psn, header(9, 3))
    if version ~= VERSION then return end
    if type == REPAIR then
      show_repair(pinfo, tree, header, rest)
    elseif type == NEGOTIATION then
      show_negotiation(pinfo, tree, header, rest)
    end
  end

  rocebox.register_opcode(OPCODE, "lowar", dissect, function(header) return header(1, 3):uint() end)
end
