-- SPDX-License-Identifier: BSD-3-Clause
-- Probes of the round-trip time that NICs of rocebox send beside RoCE (nic_model/rate/README.md).
return function(_)
  local PORT, BYTES = 49791, 80
  local proto = Proto("rocebox_rtt", "rocebox round-trip time probe")
  local fields = {
    version = ProtoField.uint8("rocebox_rtt.version", "Version"),
    kind = ProtoField.uint8("rocebox_rtt.kind", "Kind", base.DEC, {[1] = "request", [2] = "response"}),
    destination_qp = ProtoField.uint32("rocebox_rtt.destination_qp", "Destination queue pair", base.HEX),
    source_qp = ProtoField.uint32("rocebox_rtt.source_qp", "Source queue pair", base.HEX),
    serial = ProtoField.uint32("rocebox_rtt.serial", "Serial number"),
    request_sent = ProtoField.uint64("rocebox_rtt.request_sent", "Request sent [ns]"),
    request_received = ProtoField.uint64("rocebox_rtt.request_received", "Request received [ns]"),
    response_sent = ProtoField.uint64("rocebox_rtt.response_sent", "Response sent [ns]"),
    payload = ProtoField.bytes("rocebox_rtt.payload", "Payload of the responder"),
  }
  local impossible = ProtoExpert.new("rocebox_rtt.impossible", "Nothing that a NIC of rocebox sends",
                                     expert.group.MALFORMED, expert.severity.WARN)
  proto.fields = {fields.version, fields.kind, fields.destination_qp, fields.source_qp, fields.serial, fields.request_sent,
                  fields.request_received, fields.response_sent, fields.payload}
  proto.experts = {impossible}

  function proto.dissector(range, pinfo, root)
    if range:len() < 8 or range(0, 4):string() ~= "RBRT" then return 0 end
    pinfo.cols.protocol = "RTT"
    local tree = root:add(proto, range())
    if range:len() ~= BYTES or range(4, 1):uint() ~= 1 then
      tree:add_proto_expert_info(impossible)
      return range:len()
    end
    local kind = range(5, 1):uint()
    tree:add(fields.version, range(4, 1))
    tree:add(fields.kind, range(5, 1))
    tree:add(fields.destination_qp, range(8, 4))
    tree:add(fields.source_qp, range(12, 4))
    tree:add(fields.serial, range(16, 4))
    tree:add(fields.request_sent, range(24, 8))
    if kind == 2 then
      tree:add(fields.request_received, range(32, 8))
      tree:add(fields.response_sent, range(40, 8))
      tree:add(fields.payload, range(48, 32))
    elseif kind ~= 1 then
      tree:add_proto_expert_info(impossible)
    end
    pinfo.cols.info = string.format("%s %d of qpn 0x%06x", kind == 2 and "response" or "request", range(16, 4):uint(),
                                    range(kind == 2 and 8 or 12, 4):uint())
    return range:len()
  end
  DissectorTable.get("udp.port"):add(PORT, proto)
end
