// SPDX-License-Identifier: BSD-3-Clause
// The effective configuration as YAML that loads to the same configuration: every option with the value it has; groups
// and entries of lists as far as they were written.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "runtime/config/config.h"
#include "runtime/config/printable.h"
#include "runtime/config/units.h"

namespace rocebox::config {
namespace {

// Quoted where a plain scalar could be read as something else; with escapes when it has control characters.
std::string yaml_text(const std::string& text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./%-";
  const bool plain = !text.empty() && text.find_first_not_of(kPlain) == std::string::npos &&
                     std::isalnum(static_cast<unsigned char>(text[0])) && text != "null" && text != "Null" &&
                     text != "NULL";
  if (plain) return text;
  const bool control = printable(text) != text;
  std::string quoted(1, control ? '"' : '\'');
  for (std::size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    if (!control) {
      quoted += c == '\'' ? "''" : std::string(1, c);
    } else if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else if (c == '\xc2' && i + 1 < text.size() && (text[i + 1] & 0xE0) == 0x80) {  // C1 control characters
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++i]));
    } else {
      quoted += c;
    }
  }
  return quoted + (control ? '"' : '\'');
}

// Reads like FieldsReader and writes each value that came out. For single kernels, whose configuration lives only
// inside their make function.
class FieldsWriter final : public Fields {
 public:
  FieldsWriter(const Node* node, std::string& out, unsigned indent, bool only_given = false)
      : none_(""), reader_(node, none_), out_(out), indent_(indent), only_given_(only_given) {}

  void boolean(std::string_view name, bool& value, std::string_view doc) override {
    reader_.boolean(name, value, doc);
    line(name, value ? "true" : "false");
  }
  void integer(std::string_view name, std::int64_t& value, Range<std::int64_t> range, std::string_view doc) override {
    reader_.integer(name, value, range, doc);
    line(name, fmt::format("{}", value));
  }
  void duration(std::string_view name, Nanos& value, Range<Nanos> range, std::string_view doc) override {
    reader_.duration(name, value, range, doc);
    line(name, format_duration(value));
  }
  void rate(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range, std::string_view doc) override {
    reader_.rate(name, value, range, doc);
    line(name, format_rate(value));
  }
  void bytes(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range, std::string_view doc) override {
    reader_.bytes(name, value, range, doc);
    line(name, format_bytes(value));
  }
  void fraction(std::string_view name, double& value, Range<double> range, std::string_view doc) override {
    reader_.fraction(name, value, range, doc);
    line(name, format_fraction(value));
  }
  void text(std::string_view name, std::string& value, std::string_view doc) override {
    reader_.text(name, value, doc);
    line(name, yaml_text(value));
  }
  void texts(std::string_view name, std::vector<std::string>& values, std::string_view doc) override {
    reader_.texts(name, values, doc);
    std::vector<std::string> quoted;
    for (const std::string& value : values) quoted.push_back(yaml_text(value));
    line(name, fmt::format("[{}]", fmt::join(quoted, ", ")));
  }
  void choice(std::string_view name, int& index, std::span<const std::string_view> words,
              std::string_view doc) override {
    reader_.choice(name, index, words, doc);
    if (index >= 0) line(name, words[static_cast<std::size_t>(index)]);
  }
  // A group that was not written is off, or repeats what stands above it; to write it could mean something else.
  void group(std::string_view name, std::string_view, const std::function<void(Fields&)>& fields) override {
    if (!child(name)) return;
    std::string block;
    FieldsWriter nested(child(name), block, indent_ + 2);
    fields(nested);
    line(name, block.empty() ? "{}" : "");
    out_ += block;
  }
  void items(std::string_view name, std::string_view, std::size_t, std::size_t,
             const std::function<void(Fields&, std::size_t)>& item) override {
    const Node* node = child(name);
    if (!node || node->items.empty()) return;
    line(name, "");
    for (const Node& entry : node->items) {
      std::string block;
      FieldsWriter nested(&entry, block, indent_ + 4, true);
      item(nested, SIZE_MAX);
      if (block.size() > indent_ + 4) block[indent_ + 2] = '-';
      out_ += block;
    }
  }
  bool given(std::string_view name) override { return reader_.given(name); }
  void refuse(std::string_view, std::string_view) override {}

 private:
  bool keeps_items() const override { return true; }
  const Node* child(std::string_view name) const { return reader_.node() ? reader_.node()->find(name) : nullptr; }
  void line(std::string_view name, std::string_view value) {
    if (only_given_ && !reader_.given(name)) return;
    out_ += fmt::format("{:{}}{}:{}{}\n", "", indent_, name, value.empty() ? "" : " ", value);
  }

  Mistakes none_;
  FieldsReader reader_;
  std::string& out_;
  unsigned indent_;
  bool only_given_;  // in entries of lists, where a field that was not written may not be written
};

void write_options(const KernelConfig& kernel, std::string& out, unsigned indent) {
  FieldsWriter writer(&kernel.options, out, indent);
  kernel.type->make(writer, nullptr);
}

void write_list(std::string_view name, const std::vector<std::string>& values, unsigned indent, std::string& out) {
  if (values.empty()) return;
  out += fmt::format("{:{}}{}:\n", "", indent, name);
  for (const std::string& value : values) out += fmt::format("{:{}}  - {}\n", "", indent, yaml_text(value));
}

// A path as it must be written in the configuration: beside its file. Whole paths, `-` and names of streams stay.
std::string as_written(const RunConfig& config, const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(config.file).parent_path();
  if (folder.empty() || path.empty() || path[0] == '/' || path == "-" || path == "-.pcapng") return path;
  const std::string relative = std::filesystem::path(path).lexically_relative(folder.lexically_normal()).string();
  return relative.empty() ? path : relative;
}

std::vector<std::string> as_written(const RunConfig& config, std::vector<std::string> paths) {
  for (std::string& path : paths) path = as_written(config, path);
  return paths;
}

}  // namespace

std::string effective_yaml(const RunConfig& config) {
  std::string out;
  out += fmt::format("seed: {}\ndrain: {}\n", config.seed, format_duration(config.drain));
  out += fmt::format("pool:\n  small: {}\n  large: {}\n  giant: {}\n", config.pool.small, config.pool.large,
                     config.pool.giant);
  write_list("plugins", as_written(config, config.plugins), 0, out);
  out += "devices:\n";
  for (const DeviceConfig& device : config.devices) {
    out += fmt::format("  {}:\n", device.name);
    if (device.kind == DeviceKind::kSwitch) {
      out += "    kind: switch\n    switch:\n";
      write_options(device.kernels[0], out, 6);
      continue;
    }
    out += "    kind: bump\n";
    write_list("path", device.path, 4, out);
    if (!device.kernels.empty()) out += "    kernels:\n";
    for (const KernelConfig& kernel : device.kernels) {
      out += fmt::format("      {}:\n        type: {}\n", kernel.name, kernel.type->name);
      write_options(kernel, out, 8);
    }
  }
  if (!config.links.empty()) out += "links:\n";
  for (const LinkConfig& link : config.links) {
    out += fmt::format("  {}:\n    between: [{}, {}]\n", link.name, link.between[0].text(), link.between[1].text());
    write_options(link.kernel, out, 4);
  }
  if (!config.captures.empty() || !config.live_ports.empty()) out += "ports:\n";
  for (const CaptureBinding& binding : config.captures) {
    out += fmt::format("  {}:\n    pcap:\n", binding.port.text());
    write_list("in", as_written(config, binding.in), 6, out);
    if (!binding.filter.empty()) out += fmt::format("      filter: {}\n", yaml_text(binding.filter));
    if (!binding.out.empty()) out += fmt::format("      out: {}\n", yaml_text(as_written(config, binding.out)));
    if (!binding.in.empty())
      out += fmt::format("      pace: {}\n      loop: {}\n", format_pace(binding.pace), binding.loop);
  }
  for (const LiveBinding& binding : config.live_ports) {
    out += fmt::format("  {}:\n", binding.port.text());
    FieldsWriter writer(&binding.written, out, 4, true);
    LivePort(binding.live).fields(writer);
  }
  out += "live:\n";
  FieldsWriter live(&config.live_written, out, 2);
  LiveOptions().fields(live);
  std::vector<std::string> expectations;
  for (const Expectation& expectation : config.expectations) expectations.push_back(expectation.text);
  write_list("expect", expectations, 0, out);
  return out;
}

}  // namespace rocebox::config
