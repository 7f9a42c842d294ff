-- SPDX-License-Identifier: BSD-3-Clause
-- What observers at both ends of a queue pair tell each other (kernels/scr/README.md).
return function(_)
  local PORT, BYTES = 49792, 128
  local proto = Proto("rocebox_peer", "rocebox peer message")
  local fields = {
    version = ProtoField.uint8("rocebox_peer.version", "Version"),
    destination_qp = ProtoField.uint32("rocebox_peer.destination_qp", "Destination queue pair", base.HEX),
    source_qp = ProtoField.uint32("rocebox_peer.source_qp", "Source queue pair", base.HEX),
    sent = ProtoField.uint64("rocebox_peer.sent", "Sent [ns]"),
    contents = ProtoField.bytes("rocebox_peer.contents", "Contents of another observer"),
    kind = ProtoField.uint8("rocebox_peer.kind", "Kind", base.DEC,
                            {[1] = "credit", [2] = "utilisation", [3] = "backpressure", [16] = "asks for credits"}),
    value = ProtoField.uint64("rocebox_peer.value", "Value"),
    value2 = ProtoField.uint64("rocebox_peer.value2", "Second value"),
  }
  local impossible = ProtoExpert.new("rocebox_peer.impossible", "Nothing that a NIC of rocebox sends", expert.group.MALFORMED,
                                     expert.severity.WARN)
  proto.fields = {fields.version, fields.destination_qp, fields.source_qp, fields.sent, fields.contents, fields.kind, fields.value,
                  fields.value2}
  proto.experts = {impossible}

  function proto.dissector(range, pinfo, root)
    if range:len() < 8 or range(0, 4):string() ~= "RBPM" then return 0 end
    pinfo.cols.protocol = "PEER"
    local tree = root:add(proto, range())
    if range:len() ~= BYTES or range(4, 1):uint() ~= 1 then
      tree:add_proto_expert_info(impossible)
      return range:len()
    end
    tree:add(fields.version, range(4, 1))
    tree:add(fields.destination_qp, range(8, 4))
    tree:add(fields.source_qp, range(12, 4))
    tree:add(fields.sent, range(16, 8))
    if range(32, 4):string() ~= "SCRM" then
      tree:add(fields.contents, range(32, 96))
      return range:len()
    end
    if range(36, 1):uint() ~= 1 or range(37, 1):uint() == 0 then tree:add_proto_expert_info(impossible) end
    tree:add(fields.kind, range(37, 1))
    tree:add(fields.value, range(40, 8))
    tree:add(fields.value2, range(48, 8))
    pinfo.cols.info = string.format("kind %d for qpn 0x%06x: %s", range(37, 1):uint(), range(8, 4):uint(), tostring(range(40, 8):uint64()))
    return range:len()
  end
  DissectorTable.get("udp.port"):add(PORT, proto)
end
