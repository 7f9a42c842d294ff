// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/option_texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/component/fields.h"

namespace rocebox::switch_model {
namespace {

class Recorder final : public Fields {
 public:
  OptionTexts texts_;

  void boolean(std::string_view name, bool& value, std::string_view) override { add(name, value); }
  void integer(std::string_view name, std::int64_t& value, Range<std::int64_t>, std::string_view) override {
    add(name, value);
  }
  void duration(std::string_view name, Nanos& value, Range<Nanos>, std::string_view) override { add(name, value); }
  void rate(std::string_view name, std::uint64_t& value, Range<std::uint64_t>, std::string_view) override {
    add(name, value);
  }
  void bytes(std::string_view name, std::uint64_t& value, Range<std::uint64_t>, std::string_view) override {
    add(name, value);
  }
  void fraction(std::string_view name, double& value, Range<double>, std::string_view) override { add(name, value); }
  void text(std::string_view name, std::string& value, std::string_view) override { add(name, value); }
  void texts(std::string_view name, std::vector<std::string>& values, std::string_view) override {
    add(name, fmt::format("{}", fmt::join(values, ", ")));
  }
  void choice(std::string_view name, int& index, std::span<const std::string_view>, std::string_view) override {
    add(name, index);
  }
  void group(std::string_view name, std::string_view, const std::function<void(Fields&)>& fields) override {
    within(fmt::format("{}{}.", prefix_, name), [&] { fields(*this); });
  }
  void items(std::string_view name, std::string_view, std::size_t count, std::size_t,
             const std::function<void(Fields&, std::size_t)>& item) override {
    add(name, count);
    for (std::size_t i = 0; i < count; i++) within(fmt::format("{}{}[{}].", prefix_, name, i), [&] { item(*this, i); });
  }
  bool given(std::string_view) override { return true; }  // all has been read: no default is to be worked out again
  void refuse(std::string_view, std::string_view) override {}

 private:
  template <class T>
  void add(std::string_view name, const T& value) {
    texts_.emplace_back(fmt::format("{}{}", prefix_, name), fmt::format("{}", value));
  }
  template <class Inside>
  void within(std::string prefix, Inside inside) {
    std::swap(prefix_, prefix);
    inside();
    std::swap(prefix_, prefix);
  }

  std::string prefix_;
};

}  // namespace

OptionTexts option_texts(const std::function<void(Fields&)>& fields) {
  Recorder recorder;
  fields(recorder);
  return std::move(recorder.texts_);
}

}  // namespace rocebox::switch_model
