#include "pointwise.h"

#include <string_view>
#include <unordered_map>

#include "loop_table.h"

namespace rl {
namespace {

class Loops final : public LoopTable {
 public:
  Loops() {
    rows_.reserve(256);
    RL_ISA_CALL(fill_arithmetic, *this);
    RL_ISA_CALL(fill_compare, *this);
    RL_ISA_CALL(fill_math, *this);
    RL_ISA_CALL(fill_activation, *this);
    fill_complex(*this);
  }

  void set(const char* op, DType dtype, Loop loop) override { rows_[op].loops[static_cast<int>(dtype)] = loop; }

  Loop find(const char* op, DType dtype) const {
    const auto row = rows_.find(op);
    return row == rows_.end() ? nullptr : row->second.loops[static_cast<int>(dtype)];
  }

 private:
  struct Row {
    Loop loops[kNumDTypes] = {};
  };
  std::unordered_map<std::string_view, Row> rows_;
};

}  // namespace

Loop find_loop(const char* op, DType compute) {
  static const Loops loops;
  return loops.find(op, compute);
}

}  // namespace rl
