// Gradient rules: the expression strings of operator records as small programs, and the nodes that run them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine.h"

namespace rl {

// Where an instruction finds an argument.
struct Operand {
  enum Source : uint8_t { Constant, Saved, Grad, Temporary } source;
  uint8_t index;
  static constexpr uint8_t kAll = 255;  // of Grad: all of them, as a tuple
};

class Machine;
struct Value {
  Arg arg;
  Ref<> owned;  // what arg points to, where it is an object of its own
};
using Builtin = Value (*)(Machine&, const Operand* args, int n);
struct BuiltinEntry {
  const char* name;
  Builtin run;
  int nargs;
  int geometry;  // the argument that is asked for its shape and type only, or -1
};
const BuiltinEntry* find_builtin(const char* name);

struct Instruction {
  enum Code : uint8_t {
    Call,
    Builtin,
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Neg,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Move,
    Jump,
    JumpUnless
  } code;
  uint8_t target;  // temporary that takes the result
  uint16_t nargs;
  uint32_t first;  // of Program::operands; for jumps the destination
  rl::Builtin builtin = nullptr;
  // Of a call: the overloads of the name, with their arguments in place. The first that takes them is called.
  struct Overload {
    const Op* op;
    uint32_t first;
    uint16_t nargs;
  };
  std::vector<Overload> overloads;
};

struct Program {
  std::vector<int> params;  // the parameters whose gradient it computes
  uint64_t saves = 0;       // bits: what it reads of Rule::saves
  std::vector<Instruction> code;
  std::vector<Operand> operands;
  Operand result{};
  int ntemporaries = 0;
  Ref<> callable;                  // a rule that is a Python function
  std::vector<Operand> call_args;  // its arguments, parallel to call_names
  std::vector<std::string> call_names;
  bool wants_needs = false;  // the function takes `needs`
};

// What a node keeps of a call.
struct alignas(4) Save {
  bool result;  // of the results, otherwise of the arguments
  bool geometry_only;
  uint8_t index;
};

struct Rule {
  PyObject_HEAD const Op* op;
  PyTypeObject* node_type;
  std::vector<Save>* saves;
  std::vector<Program>* programs;
  std::vector<Arg>* constants;
  std::vector<Ref<>>* owned;  // what constants point to
  struct Input {
    uint8_t param;
    bool list;
    int16_t program;                             // or one of
    static constexpr int16_t kMissing = -1;      // there is no rule
    static constexpr int16_t kOverwritten = -2;  // the operator writes it without reading it
  };
  std::vector<Input>* inputs;  // the tensor parameters that may get a gradient, in the order of edges
  int list_input;              // index of the one that is a list, or -1
  int auxiliary;               // how many of the last results carry no gradient
};

Rule* rule_of(const Op*);  // compiles at first use; throws

struct Saved {
  // Packed: arg.object is what the user's hook made of a tensor; lists hold such objects beside tensors.
  enum State : uint8_t { Empty, Plain, Object, Input, Result, Packed, Shape, Shapes, Tensors, Released } state;
  Arg arg;
  uint32_t version;
};

struct RuleNode : Node {
  Rule* rule;
  Saved* saved;  // parallel to rule->saves
};

// What a call looked like when a node for it is made. `edges` are parallel to the rule's inputs; the node takes them.
struct Recorded {
  Rule* rule;
  const Arg* args;
  PyObject* const* outputs;
  uint32_t noutputs;
  Edge* edges;
  uint32_t nedges;
  Tensor* written = nullptr;         // the tensor that the call wrote to
  const Geometry* before = nullptr;  // its geometry before
  uint32_t version_before = 0;       // of its storage
  PyObject* self_before = nullptr;   // a copy of it from before, where the rule reads it
};
RuleNode* new_rule_node(const Recorded&);
uint64_t saves_needed(const Rule*, const Edge* edges, uint32_t nedges);

// Runs programs.
class Machine {
 public:
  // What unpack hooks gave for the saved values of one node, so that each runs once in a step.
  using Unpacked = std::vector<std::pair<uint8_t, Ref<>>>;
  Machine(RuleNode* node, PyObject** grads, Unpacked* unpacked) : node(node), grads(grads), unpacked_(unpacked) {}
  Value run(const Program&);
  Arg get(Operand);
  Geometry geometry(Operand);  // of a tensor or of what was kept of it; numbers count as 0-d
  std::vector<Geometry> geometries(Operand);
  Tensor* grad(uint32_t index);  // of a result; zeros where there is none
  int64_t* ints(size_t n);       // lives as long as the machine
  RuleNode* node;
  PyObject** grads;

 private:
  Arg unpack(uint8_t index);
  Value arithmetic(Instruction::Code, const Arg& a, const Arg& b);
  Value few_[8];
  std::vector<Value> many_;
  Value* temporaries_ = few_;
  Unpacked* unpacked_;
  std::vector<std::unique_ptr<int64_t[]>> ints_;
  std::vector<Ref<>> keep_;  // tensors made for saved results and absent gradients
};

Value value_of(Ref<> object);  // a tensor, tuple of tensors, number or None
Value value_of(const Arg& arg);
Value shared_value(const Arg& arg);  // owns a reference to the object too
int64_t number_of_elements(const Geometry&);

// Gives what a node saved of a result the tangent of forward mode.
void set_saved_tangent(Node*, size_t output_nr, const Ref<>& tangent);
// The parameter whose gradient an edge of a node is; null where the node has no rule.
const char* input_name(const Node*, uint32_t edge);

void init_rule_type(PyObject* module);

}  // namespace rl
