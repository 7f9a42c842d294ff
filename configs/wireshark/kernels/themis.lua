-- SPDX-License-Identifier: BSD-3-Clause
-- What the kernel `themis` puts on the wire, for rocebox.lua: the Path Avoidance Signal of a NACK, in BTH byte 4 at
-- `path_avoidance_bit: 0`, the default (kernels/themis/README.md, "Wire formats").
return function(rocebox)
  local MASK = 0x01
  local proto = Proto("themis", "Themis")
  local signal = ProtoField.bool("themis.path_avoidance", "Path Avoidance Signal", 8, nil, MASK)
  proto.fields = {signal}
  rocebox.register_bth_bits(4, MASK, "Path Avoidance Signal", function(range, _, tree) tree:add(signal, range) end)
end
