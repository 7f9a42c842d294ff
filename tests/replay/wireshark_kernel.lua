-- SPDX-License-Identifier: BSD-3-Clause
-- An example of what a kernel adds to rocebox's Wireshark tree, for wireshark_test.py and for authors to start from. In
-- use it would lie in configs/wireshark/kernels/. The protocol is made up.
--
-- The file returns a function, so that nothing happens until rocebox.lua calls it with its registry.
return function(rocebox)
  -- Fields and preferences of its own: those of a Proto, which need not be attached to any port.
  local proto = Proto("example", "Example kernel")
  local repairs = ProtoField.uint16("example.repairs", "Repairs")
  local group = ProtoField.uint24("example.group", "Group", base.HEX)
  local color = ProtoField.uint8("example.color", "Color", base.DEC, nil, 0x03)
  local slot = ProtoField.uint32("example.slot", "Slot")
  proto.fields = {repairs, group, color, slot}
  proto.prefs.slots = Pref.bool("Read immediates as slots", false)

  -- A header behind the BTH: 16 bits of repairs, 24 of group.
  rocebox.register_opcode(0x1d, "example repair", function(range, pinfo, tree, packet)
    tree:add(repairs, range(0, 2))  -- a packet too short for it is marked, and no harm done
    tree:add(group, range(2, 3))
    pinfo.cols.info:append(string.format(" repairs %d of %s", range(0, 2):uint(), packet.flow))
  end)

  -- Two reserved bits of the BTH.
  rocebox.register_bth_bits(8, 0x03, "example color", function(range, _, tree) tree:add(color, range) end)
  rocebox.register_bth_bits(4, 0x20, "example mark")

  -- An immediate looks like any other number: claim it only when told so.
  rocebox.register_immediate("example slot", function(range, _, tree)
    if not proto.prefs.slots then return false end
    tree:add(slot, range)
    return true
  end)
end
