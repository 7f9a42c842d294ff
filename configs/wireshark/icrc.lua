-- SPDX-License-Identifier: BSD-3-Clause
-- The invariant CRC of a RoCEv2 packet that is held whole, for rocebox.lua: function(tvb, packet) -> the number that
-- its last four bytes should make, the first byte on the wire being the highest. Run by itself, this file does nothing.

local bits = bit32 or bit
local band, bxor, rshift = bits.band, bits.bxor, bits.rshift
local extract = bits.extract or function(number, at) return band(rshift(number, at), 0xff) end

-- Tables for four bytes a step (slicing): crc_tables[k][b] is the CRC of the byte b with k zero bytes behind it.
local crc_tables = {[0] = {}, {}, {}, {}}
for byte = 0, 255 do
  local crc = byte
  for _ = 1, 8 do crc = bxor(rshift(crc, 1), band(crc, 1) * 0xedb88320) end
  crc_tables[0][byte] = crc
end
for behind = 1, 3 do
  for byte = 0, 255 do
    local crc = crc_tables[behind - 1][byte]
    crc_tables[behind][byte] = bxor(rshift(crc, 8), crc_tables[0][band(crc, 0xff)])
  end
end

local function crc32_update(crc, text)
  local t0, t1, t2, t3 = crc_tables[0], crc_tables[1], crc_tables[2], crc_tables[3]
  local whole = #text - #text % 4
  for at = 1, whole, 4 do
    local a, b, c, d = text:byte(at, at + 3)
    local mixed = bxor(crc, a + b * 0x100 + c * 0x10000 + d * 0x1000000)
    crc = bxor(t3[band(mixed, 0xff)], t2[extract(mixed, 8, 8)], t1[extract(mixed, 16, 8)], t0[rshift(mixed, 24)])
  end
  for at = whole + 1, #text do crc = bxor(rshift(crc, 8), t0[band(bxor(crc, text:byte(at)), 0xff)]) end
  return crc
end

-- Annex A17.3.3: ones in place of an LRH, then the packet from its IP header on, with ones for what routers may change.
return function(tvb, packet)
  local ip, udp, ones = packet.ip_offset, packet.udp_offset, "\255"
  local function raw(from, to) return to > from and tvb:raw(from, to - from) or "" end
  local head
  if packet.ip_version == 4 then  -- type of service, time to live, header checksum
    head = raw(ip, ip + 1) .. ones .. raw(ip + 2, ip + 8) .. ones .. raw(ip + 9, ip + 10) .. ones:rep(2)
           .. raw(ip + 12, udp)
  else  -- traffic class, flow label, hop limit
    head = "\111" .. ones:rep(3) .. raw(ip + 4, ip + 7) .. ones .. raw(ip + 8, udp)
  end
  local text = ones:rep(8) .. head .. raw(udp, udp + 6) .. ones:rep(2)  -- UDP checksum
               .. raw(udp + 8, udp + 12) .. ones .. raw(udp + 13, packet.ip_end - 4)  -- FECN, BECN, reserved
  local crc, number = bxor(crc32_update(0xffffffff, text), 0xffffffff), 0
  for shift = 0, 24, 8 do number = number * 256 + band(rshift(crc, shift), 0xff) end  -- low byte first on the wire
  return number
end
