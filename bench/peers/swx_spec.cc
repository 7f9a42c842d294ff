// SPDX-License-Identifier: BSD-3-Clause
#include "bench/peers/swx_spec.h"

#include <rte_swx_pipeline.h>

#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace rocebox::bench {
namespace {

using Words = std::vector<std::string>;

std::vector<const char*> pointers(const Words& words) {
  std::vector<const char*> all;
  for (const std::string& word : words) all.push_back(word.c_str());
  return all;
}

std::uint32_t count_of(const auto& all) { return static_cast<std::uint32_t>(all.size()); }

class Builder {
 public:
  Builder(rte_swx_pipeline* pipeline, const std::string& path) : pipeline_(pipeline), path_(path), file_(path) {
    if (!file_) throw std::runtime_error(path + " cannot be read");
  }

  void build() {
    for (Words words = next(); !words.empty(); words = next()) {
      const std::string& kind = words[0];
      if (kind == "struct" && words.size() == 3)
        structure(words[1]);
      else if (kind == "header" && words.size() == 4)
        check(rte_swx_pipeline_packet_header_register(pipeline_, words[1].c_str(), words[3].c_str()));
      else if (kind == "metadata" && words.size() == 3)
        check(rte_swx_pipeline_packet_metadata_register(pipeline_, words[2].c_str()));
      else if (kind == "action" && words.size() >= 5)
        action(words);
      else if (kind == "table" && words.size() == 3)
        table(words[1]);
      else if (kind == "selector" && words.size() == 3)
        selector(words[1]);
      else if (kind == "apply")
        apply();
      else
        fail("`" + kind + "` is not understood");
    }
    check(rte_swx_pipeline_build(pipeline_));
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error(path_ + ":" + std::to_string(line_) + ": " + why);
  }
  void check(int status) const {
    if (status != 0) fail("SWX refuses what ends here: error " + std::to_string(-status));
  }

  // The words of the next line that has some; none at the end.
  Words next() {
    Words words;
    while (words.empty() && std::getline(file_, text_)) {
      line_++;
      text_ = text_.substr(0, text_.find(';'));
      std::istringstream all(text_);
      for (std::string word; all >> word;) words.push_back(word);
    }
    return words;
  }
  // The lines of a block, as words, to its end.
  std::vector<Words> block() {
    std::vector<Words> lines;
    for (Words words = next(); words != Words{"}"}; words = next()) {
      if (words.empty()) fail("a block does not end");
      lines.push_back(words);
    }
    return lines;
  }
  // The same, each line one text.
  Words block_texts() {
    Words texts;
    for (const Words& words : block()) {
      std::string& text = texts.emplace_back();
      for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    }
    return texts;
  }

  void structure(const std::string& name) {
    const std::vector<Words> lines = block();
    std::vector<rte_swx_field_params> fields;
    for (const Words& words : lines) {
      unsigned bits = 0;
      if (words.size() != 2 || std::sscanf(words[0].c_str(), "bit<%u>", &bits) != 1) fail("a field is `bit<N> NAME`");
      fields.push_back({words[1].c_str(), bits});
    }
    check(rte_swx_pipeline_struct_type_register(pipeline_, name.c_str(), fields.data(), count_of(fields), 0));
  }

  void action(const Words& words) {
    const Words texts = block_texts();
    std::vector<const char*> instructions = pointers(texts);
    const char* arguments = words[3] == "none" ? nullptr : words[4].c_str();
    check(rte_swx_pipeline_action_config(pipeline_, words[1].c_str(), arguments, instructions.data(),
                                         count_of(instructions)));
  }

  void apply() {
    const Words texts = block_texts();
    std::vector<const char*> instructions = pointers(texts);
    check(rte_swx_pipeline_instructions_config(pipeline_, instructions.data(), count_of(instructions)));
  }

  // What stands in the block of a table or selector: single values by name, and inner blocks by name.
  struct Block {
    std::map<std::string, std::string> values;
    std::map<std::string, std::vector<Words>> blocks;
  };
  Block nested() {
    Block all;
    for (Words words = next(); words != Words{"}"}; words = next()) {
      if (words.size() < 2) fail("a block does not end, or a line has no value");
      if (words[1] == "{")
        all.blocks[words[0]] = block();
      else
        all.values[words[0]] = words[1];
    }
    return all;
  }
  static Words firsts(const std::vector<Words>& lines) {
    Words all;
    for (const Words& words : lines) all.push_back(words[0]);
    return all;
  }

  void table(const std::string& name) {
    Block block = nested();
    std::vector<rte_swx_match_field_params> fields;
    for (const Words& words : block.blocks["key"]) {
      if (words.size() != 2 || (words[1] != "lpm" && words[1] != "exact"))
        fail("a key is `FIELD lpm` or `FIELD exact`");
      fields.push_back({words[0].c_str(), words[1] == "lpm" ? RTE_SWX_TABLE_MATCH_LPM : RTE_SWX_TABLE_MATCH_EXACT});
    }
    const Words names = firsts(block.blocks["actions"]);
    std::vector<const char*> actions = pointers(names);
    rte_swx_pipeline_table_params params{};
    params.fields = fields.data();
    params.n_fields = count_of(fields);
    params.action_names = actions.data();
    params.n_actions = count_of(actions);
    params.default_action_name = block.values["default_action"].c_str();
    const auto size = static_cast<std::uint32_t>(std::stoul(block.values["size"]));
    check(rte_swx_pipeline_table_config(pipeline_, name.c_str(), &params, nullptr, nullptr, size));
  }

  void selector(const std::string& name) {
    Block block = nested();
    const Words names = firsts(block.blocks["selector"]);
    std::vector<const char*> fields = pointers(names);
    rte_swx_pipeline_selector_params params{};
    params.group_id_field_name = block.values["group_id"].c_str();
    params.selector_field_names = fields.data();
    params.n_selector_fields = count_of(fields);
    params.member_id_field_name = block.values["member_id"].c_str();
    params.n_groups_max = static_cast<std::uint32_t>(std::stoul(block.values["n_groups_max"]));
    params.n_members_per_group_max = static_cast<std::uint32_t>(std::stoul(block.values["n_members_per_group_max"]));
    check(rte_swx_pipeline_selector_config(pipeline_, name.c_str(), &params));
  }

  rte_swx_pipeline* pipeline_;
  std::string path_, text_;
  std::ifstream file_;
  unsigned line_ = 0;
};

}  // namespace

void build_from_spec(rte_swx_pipeline* pipeline, const std::string& path) { Builder(pipeline, path).build(); }

}  // namespace rocebox::bench
