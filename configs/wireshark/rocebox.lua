-- SPDX-License-Identifier: BSD-3-Clause
-- What rocebox adds to Wireshark's own view of RoCEv2 (UDP port 4791): the verdict on the ICRC, the PSN's distance from
-- the packet before, the flow's name; and a registry for what kernels put on the wire. See README.md beside this.
-- A post-dissector: Wireshark's `infiniband` dissector keeps the port and shows the headers, this adds a tree below it.

if rocebox then return end  -- loaded already, as plugin and by -X lua_script

local folder = debug.getinfo(1, "S").source:match("^@(.*[/\\])") or "./"
local compute_icrc = dofile(folder .. "icrc.lua")

local bits = bit32 or bit
local band, rshift = bits.band, bits.rshift

local ROCE_PORT_BYTES = "\18\183"  -- 4791
local HEADERS_BYTES_MAX = 512  -- all headers up to UDP lie in these, with tunnels and extension headers
local UDP_PROTOCOL, BTH_BYTES, ICRC_BYTES = 17, 12, 4
local PSN_SPAN = 2 ^ 24
local RC, UC, UD, CNP_SERVICE = 0, 1, 3, 4  -- services: the upper three bits of the opcode
local LAST_OPERATION = 0x17  -- of the lower five: SEND Only with Invalidate
local BAD, GOOD, UNVERIFIABLE = 0, 1, 2  -- as Wireshark's own *.checksum.status

local proto = Proto("rocebox", "rocebox")
local field = {
  flow = ProtoField.string("rocebox.flow", "Flow"),
  psn_distance = ProtoField.int32("rocebox.psn_distance", "PSN distance", base.DEC, nil, nil,
                                  "PSN less that of the packet before in the flow and direction, modulo 2^24, signed"),
  previous_frame = ProtoField.framenum("rocebox.previous_frame", "Previous packet of the flow"),
  icrc_status = ProtoField.uint8("rocebox.icrc.status", "ICRC status", base.DEC,
                                 {[BAD] = "Bad", [GOOD] = "Good", [UNVERIFIABLE] = "Unverifiable"}),
  icrc_calculated = ProtoField.uint32("rocebox.icrc.calculated", "Calculated ICRC", base.HEX, nil, nil,
                                      "Read as infiniband.invariant.crc is: the first byte on the wire is the highest"),
  kernel = ProtoField.string("rocebox.kernel", "Kernel", base.UNICODE, "Name registered for what the packet carries"),
}
proto.fields = field
local expert_bad_icrc = ProtoExpert.new("rocebox.icrc.bad", "Bad ICRC", expert.group.CHECKSUM, expert.severity.ERROR)
local expert_kernel = ProtoExpert.new("rocebox.kernel.failed", "The kernel's dissector failed", expert.group.MALFORMED,
                                      expert.severity.WARN)
proto.experts = {expert_bad_icrc, expert_kernel}
proto.prefs.verify_icrc = Pref.bool("Verify the ICRC", true, "Compute the invariant CRC of every packet held whole")

-- The registry.

local opcodes, immediates, bth_bits = {}, {}, {}
-- Byte of the BTH -> its bits that the specification reserves.
local RESERVED_BITS = {[4] = 0x3f, [8] = 0x7f}

local registry = {proto = proto}

local function require_entry(call, name, dissect, optional)
  if type(name) ~= "string" or name == "" then error(call .. ": the name must be a text that is not empty", 3) end
  if type(dissect) ~= "function" and not (optional and dissect == nil) then
    error(call .. ": `" .. name .. "` needs a function(range, pinfo, tree, packet)", 3)
  end
end

--- Packets of this BTH opcode are `name`; dissect(range, pinfo, tree, packet) gets what lies between BTH and ICRC. Where
--- the 12 bytes are no BTH behind the opcode, `qpn_of`, given those bytes, returns the destination QPN; there is no PSN.
function registry.register_opcode(opcode, name, dissect, qpn_of)
  require_entry("rocebox.register_opcode", name, dissect)
  if type(opcode) ~= "number" or opcode < 0 or opcode > 255 or opcode % 1 ~= 0 then
    error("rocebox.register_opcode: `" .. name .. "`: the opcode must be a whole number from 0 to 255", 2)
  end
  if opcodes[opcode] then
    error(string.format("rocebox.register_opcode: `%s`: opcode 0x%02x is taken by `%s`", name, opcode,
                        opcodes[opcode].name), 2)
  end
  if qpn_of ~= nil and type(qpn_of) ~= "function" then
    error("rocebox.register_opcode: `" .. name .. "`: what finds the QPN must be a function(header)", 2)
  end
  opcodes[opcode] = {name = name, dissect = dissect, qpn_of = qpn_of}
end

--- dissect(range, pinfo, tree, packet) gets the four bytes of every immediate of RC, UC and UD. An immediate does not
--- tell whose it is: the function returns true when it knows it for its own, and that ends the search.
function registry.register_immediate(name, dissect)
  require_entry("rocebox.register_immediate", name, dissect)
  table.insert(immediates, {name = name, dissect = dissect})
end

--- Packets with any bit of `mask` set in BTH byte 4 (six reserved bits, 0x3f; the ICRC does not cover them) or byte 8
--- (seven, 0x7f; covered) are `name`; dissect(range, pinfo, tree, packet), which may be nil, gets that byte.
function registry.register_bth_bits(byte, mask, name, dissect)
  require_entry("rocebox.register_bth_bits", name, dissect, true)
  local reserved = RESERVED_BITS[byte]
  if not reserved or type(mask) ~= "number" or mask < 1 or mask > 0xff or band(mask, reserved) ~= mask then
    error("rocebox.register_bth_bits: `" .. name .. "`: reserved are the bits 0x3f of byte 4 and 0x7f of byte 8", 2)
  end
  for _, other in ipairs(bth_bits) do
    if other.byte == byte and band(other.mask, mask) ~= 0 then
      error(string.format("rocebox.register_bth_bits: `%s`: bits 0x%02x of byte %d are taken by `%s`", name,
                          band(other.mask, mask), byte, other.name), 2)
    end
  end
  table.insert(bth_bits, {byte = byte, mask = mask, name = name, dissect = dissect})
end

-- Finding the packet.

-- The bytes decide, not the fields of Wireshark's tree: in the first of two passes, when PSNs are compared, there is no
-- tree. Both functions return the end of the IP packet, or nil when the bytes at `ip` are no IP header that leads to
-- `udp`, or that of a fragment.
local function walk_ipv4(tvb, ip, udp)
  if ip + 4 * tvb(ip, 1):bitfield(4, 4) ~= udp or tvb(ip, 1):bitfield(0, 4) ~= 4 then return nil end
  if tvb(ip + 9, 1):uint() ~= UDP_PROTOCOL or band(tvb(ip + 6, 2):uint(), 0x3fff) ~= 0 then return nil end
  return ip + tvb(ip + 2, 2):uint()
end

local IPV6_EXTENSIONS = {[0] = true, [43] = true, [60] = true}  -- hop by hop, routing, destination options
local function walk_ipv6(tvb, ip, udp)
  if tvb(ip, 1):bitfield(0, 4) ~= 6 then return nil end
  local next_header, at = tvb(ip + 6, 1):uint(), ip + 40
  while at < udp and IPV6_EXTENSIONS[next_header] do
    next_header, at = tvb(at, 1):uint(), at + 8 * (tvb(at + 1, 1):uint() + 1)
  end
  if at ~= udp or next_header ~= UDP_PROTOCOL then return nil end
  return ip + 40 + tvb(ip + 4, 2):uint()
end

-- The IP header before `udp` whose addresses are those of the packet: offset, version, end, source, destination. The
-- addresses tell it from the quote of an earlier packet in an ICMP error. (pinfo.src would not do: Wireshark changes it
-- to a LID in messages of the connection manager.)
local function find_ip(tvb, pinfo, udp)
  for ip = udp - 20, math.max(udp - 60, 0), -4 do
    local ip_end = walk_ipv4(tvb, ip, udp)
    if ip_end then
      local source, destination = tvb(ip + 12, 4):ipv4(), tvb(ip + 16, 4):ipv4()
      if source == pinfo.net_src and destination == pinfo.net_dst then return ip, 4, ip_end, source, destination end
    end
  end
  for ip = udp - 40, 0, -8 do
    local ip_end = walk_ipv6(tvb, ip, udp)
    if ip_end then
      local source, destination = tvb(ip + 8, 16):ipv6(), tvb(ip + 24, 16):ipv6()
      if source == pinfo.net_src and destination == pinfo.net_dst then return ip, 6, ip_end, source, destination end
    end
  end
end

-- The bytes between BTH and immediate, or nil where the opcode has no immediate.
local function immediate_offset(opcode)
  local service, operation = rshift(opcode, 5), band(opcode, 0x1f)
  if service == UD then return operation == 0x05 and 8 or nil end
  if service ~= RC and service ~= UC then return nil end
  if operation == 0x0b then return 16 end
  return (operation == 0x03 or operation == 0x05 or operation == 0x09) and 0 or nil
end

-- What dissect functions get as `packet`, or nil when the frame has no RoCEv2 packet with a whole BTH. It is sought
-- behind whatever link layer and tunnels.
local function find_packet(tvb, pinfo)
  local head = tvb:raw(0, math.min(tvb:len(), HEADERS_BYTES_MAX))
  local from, port = 1, nil
  local udp, ip, version, ip_end, source, destination
  repeat
    port = head:find(ROCE_PORT_BYTES, from, true)
    if not port then return nil end
    udp, from = port - 1 - 2, port + 1
    if udp + 8 + BTH_BYTES > tvb:len() then return nil end
    ip, version, ip_end, source, destination = find_ip(tvb, pinfo, udp)
  until ip

  local at = udp + 8
  local packet = {ip_version = version, ip_offset = ip, udp_offset = udp, bth_offset = at, ip_end = ip_end,
                  source = source, destination = destination, header = tvb(at, BTH_BYTES), opcode = tvb(at, 1):uint()}
  local own = opcodes[packet.opcode]
  if own and own.qpn_of then
    packet.qpn = own.qpn_of(packet.header)
  else
    packet.bth, packet.qpn, packet.psn = packet.header, tvb(at + 5, 3):uint(), tvb(at + 9, 3):uint()
  end
  packet.flow = string.format("%s > %s qpn 0x%06x", tostring(source), tostring(destination), packet.qpn)
  packet.address_bytes = version == 4 and tvb:raw(ip + 12, 8) or tvb:raw(ip + 8, 32)
  local body_end = math.min(ip_end - ICRC_BYTES, tvb:len())
  if body_end > at + BTH_BYTES then packet.body = tvb(at + BTH_BYTES, body_end - at - BTH_BYTES) end
  local offset = immediate_offset(packet.opcode)
  if offset and packet.body and packet.body:len() >= offset + 4 then packet.immediate = packet.body(offset, 4) end
  return packet
end

-- The ICRC.

-- What is known of a frame is kept, since Wireshark dissects it again whenever it is shown.
local calculated_icrcs, distances, previous_frames, last_of_flow

local function show_icrc(tvb, pinfo, tree, packet)
  local stored_at = packet.ip_end - ICRC_BYTES
  local why
  if packet.ip_end > tvb:len() then
    why = "not held whole: snapped or trimmed"
  elseif packet.udp_offset + tvb(packet.udp_offset + 4, 2):uint() ~= packet.ip_end then
    why = "the lengths of IP and UDP differ"
  elseif stored_at < packet.bth_offset + BTH_BYTES then
    why = "no room for an ICRC"
  end
  if why then
    packet.icrc_status = "unverifiable"
    tree:add(field.icrc_status, packet.header, UNVERIFIABLE):append_text(" (" .. why .. ")"):set_generated()
    return
  end
  local stored = tvb(stored_at, ICRC_BYTES)
  local calculated = calculated_icrcs[pinfo.number] or compute_icrc(tvb, packet)
  calculated_icrcs[pinfo.number] = calculated
  local good = calculated == stored:uint()
  packet.icrc_status = good and "good" or "bad"
  local item = tree:add(field.icrc_status, stored, good and GOOD or BAD):set_generated()
  if not good then
    item:add_proto_expert_info(expert_bad_icrc, string.format("Bad ICRC: should be 0x%08x", calculated))
  end
  tree:add(field.icrc_calculated, stored, calculated):set_generated()
end

-- PSNs.

-- Packets that share a key count in one PSN space: requests and the answers to the other side's requests (responses,
-- acknowledgements) have different ones, and every sending UD QP has its own. Nil where no PSN is known to count: CNPs,
-- and operations that the specification reserves.
local function psn_space(packet)
  local service, operation = rshift(packet.opcode, 5), band(packet.opcode, 0x1f)
  if service == CNP_SERVICE or operation > LAST_OPERATION or not packet.psn then return nil end
  local part = service == RC and operation >= 0x0d and operation <= 0x12 and "answers" or "requests"
  if service == UD then
    if not packet.body or packet.body:len() < 8 then return nil end
    part = packet.body(5, 3):uint()
  end
  return packet.address_bytes .. string.format("%06x %d %s", packet.qpn, service, part)
end

local function note_psn(pinfo, packet)
  local space = psn_space(packet)
  if not space then return end
  local last = last_of_flow[space]
  if last then
    distances[pinfo.number] = (packet.psn - last.psn + PSN_SPAN / 2) % PSN_SPAN - PSN_SPAN / 2
    previous_frames[pinfo.number] = last.frame
  end
  last_of_flow[space] = {psn = packet.psn, frame = pinfo.number}
end

-- The tree.

-- One kernel's mistake, or a packet too short for it, must not take the others' lines away.
local function call_kernel(entry, range, pinfo, tree, packet)
  local fine, result = pcall(entry.dissect, range, pinfo, tree, packet)
  if not fine then tree:add_proto_expert_info(expert_kernel, entry.name .. ": " .. tostring(result)) end
  return fine and result
end

local function show_kernels(tvb, pinfo, tree, packet)
  for _, entry in ipairs(packet.bth and bth_bits or {}) do
    local range = tvb(packet.bth_offset + entry.byte, 1)
    if band(range:uint(), entry.mask) ~= 0 then
      local item = tree:add(field.kernel, range, entry.name)
      if entry.dissect then call_kernel(entry, range, pinfo, item, packet) end
    end
  end
  local entry = opcodes[packet.opcode]
  if entry then
    local range = packet.body or tvb(packet.bth_offset + BTH_BYTES, 0)
    pinfo.cols.info:append(" [" .. entry.name .. "]")
    call_kernel(entry, range, pinfo, tree:add(field.kernel, range, entry.name), packet)
  end
  for _, immediate in ipairs(packet.immediate and immediates or {}) do
    if call_kernel(immediate, packet.immediate, pinfo, tree, packet) then
      tree:add(field.kernel, packet.immediate, immediate.name)
      break
    end
  end
end

function proto.init() calculated_icrcs, distances, previous_frames, last_of_flow = {}, {}, {}, {} end

function proto.dissector(tvb, pinfo, root)
  local packet = find_packet(tvb, pinfo)
  if not packet then return end
  if not pinfo.visited then note_psn(pinfo, packet) end

  local tree = root:add(proto, packet.header)
  tree:append_text(", " .. packet.flow)
  tree:add(field.flow, packet.header, packet.flow):set_generated()
  local distance = distances[pinfo.number]
  if distance then
    packet.psn_distance = distance
    tree:append_text(string.format(", PSN %+d", distance))
    tree:add(field.psn_distance, tvb(packet.bth_offset + 9, 3), distance):set_generated()
    tree:add(field.previous_frame, packet.bth, previous_frames[pinfo.number]):set_generated()
  end
  if proto.prefs.verify_icrc then
    show_icrc(tvb, pinfo, tree, packet)
    tree:append_text(", ICRC " .. packet.icrc_status)
  end
  show_kernels(tvb, pinfo, tree, packet)
end

register_postdissector(proto)
_G.rocebox = registry  -- for scripts beside this one: every script has globals of its own, but sees those of _G

-- What kernels put on the wire: each file of kernels/ returns a function that is called with the registry, so that
-- nothing happens when Wireshark itself runs the files of a plugin folder too, in whatever order.
local function load_kernels()
  local kernels, names = folder .. "kernels", {}
  for name in Dir.exists(kernels) and Dir.open(kernels, ".lua") or function() end do table.insert(names, name) end
  table.sort(names)
  for _, name in ipairs(names) do
    local path = kernels .. "/" .. name
    local fine, result = pcall(dofile, path)
    if fine and type(result) ~= "function" then
      fine, result = false, "the file must return a function(rocebox)"
    elseif fine then
      fine, result = pcall(result, registry)
    end
    if not fine then report_failure("rocebox: " .. path .. ": " .. tostring(result)) end
  end
end
load_kernels()
