// Operators: from a schema string to a record, from Python arguments to a Call, through layers to a kernel.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "../tensor/tensor.h"

namespace rl {

constexpr int kMaxParams = 24;

// ---- the thread word and layers
#if defined(__GLIBC__) && defined(__GNUC__)  // others do not take it from libraries that are loaded later
__attribute__((tls_model("initial-exec")))   // read in every call
#endif
extern thread_local uint32_t t_word;
inline uint32_t& thread_word() { return t_word; }
extern uint32_t g_layer_bits;  // bits that make some layer run
void register_layer(const Layer&);

// ---- operators
// What a record gives for tensors of a layout: a Python callable on tensors.
struct LayoutKernel {
  PyObject* layout;
  PyObject* fn;
  bool composite;     // over other operators, and differentiable through them
  PyObject* inplace;  // null, or a callable that writes to its first argument, for the `op_` form
};
// What core keeps beside the public part of an Op.
struct OpRecord : Op {
  std::string name_text, schema_text;
  std::vector<Param> param_store;
  std::vector<PyObject*> names;                 // interned, parallel to params
  std::vector<std::pair<PyObject*, int>> keys;  // names and NumPy's spellings of them → index
  int npositional = 0;
  bool writes_inplace = false;            // the native kernel honours Call::inplace
  uint32_t unordered = 0;                 // device types on which the order of threads decides the result, a bit each
  bool exact = false;                     // results are written to tensors of their own dtype only
  bool any_out = false;                   // ... of every dtype, which stands for a missing dtype parameter
  std::vector<std::string> result_names;  // of `-> (Tensor values, Tensor indices)`; empty where they have none
  std::vector<LayoutKernel> layouts;
  Loop number_loops[2][2] = {};  // [position of a number][bfloat16]: beside a half it keeps all its digits
  int varargs = -1;              // index of the int list that absorbs loose ints (`view(2, 3)`), or -1
};

OpRecord* parse_schema(const std::string& schema);  // throws; the record lives as long as the process
OpRecord* find_op(const std::string& name);         // null: none
void add_op(OpRecord*);
// The type of the named results of all overloads of an op, rushlight.return_types.<op>.
PyTypeObject* named_result(const OpRecord*);

// The Python callable over one name: its overloads in the order of registration.
struct Operator {
  PyObject_HEAD vectorcallfunc vectorcall;
  std::vector<OpRecord*>* overloads;
  PyObject* name;
  PyObject* doc;
  PyObject* module;
  PyObject* dict;
  bool inplace;  // the `op_` form: writes its first argument
};
extern PyTypeObject* g_operator_type;
void init_operator_type(PyObject* module);

// ---- calls
// The frame of one call: arguments, and what they need to stay alive. Lives on the stack.
struct Frame {
  Call call;
  alignas(Arg) unsigned char storage[kMaxParams * sizeof(Arg)];
  int64_t ints[48];
  int nints = 0;
  Tensor* tensors[16];
  int ntensors = 0;
  std::vector<std::unique_ptr<char[]>> heap;  // lists that are longer
  std::vector<Ref<>> owned;
  Arg* args() { return reinterpret_cast<Arg*>(storage); }
  int64_t* reserve_ints(int64_t n);
  Tensor** reserve_tensors(int64_t n);
};

PyObject* dispatch(Call&);  // layers, then run
PyObject* run(Call&);       // below every layer: out=, in-place, kernel; bumps versions
Operator* new_operator(const char* name, bool inplace);
PyObject* call_operator(Operator*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

// Fills in flags and device from the arguments.
void complete(Call&);
// From C++: a call by arguments; missing ones take their defaults.
Ref<> call(const Op*, const Arg* args, int nargs, bool inplace = false);
inline Ref<Tensor> call_tensor(const Op* op, const Arg* args, int nargs) {
  Ref<> r = call(op, args, nargs);
  return Ref<Tensor>(reinterpret_cast<Tensor*>(r.release()));
}

bool number_from_object(PyObject*, Arg*);  // Python and NumPy numbers; false: something else
std::string short_name(const Op*);         // without its overload, as the user wrote it
PyObject* arg_to_object(const Arg&);       // new reference
PyObject* run_array_kernel(Call&, const Op*);
void check_pointwise_result(Call&, const Tensor*);  // of a plugin's kernel; nothing to do for other families
PyObject* run_python(Call&, PyObject* fn,
                     PyObject* first = nullptr);           // `first`: a tuple that goes before the arguments
PyObject* results(const Op*, Ref<Tensor>* values, int n);  // a tuple, named as the schema names its results
PyObject* without_kernel(Call&);  // NotImplementedError, or the CPU's result where the backend allows it

// Writes `value` over `target`: in-place results and out=. Checks that the dtype can be cast.
void write_result(const Op*, Tensor* target, Tensor* value, bool is_out);
void check_writable(const Op*, const Tensor* target);
void resize_out(const Op*, Tensor* out, int ndim, const int64_t* sizes);
// Refuses a target of a dtype that the op does not write its result in.
void check_target_dtype(const Op*, DType value, DType target);

void push_mode(PyObject* mode);
void pop_mode();
void init_override_layers();
void init_layout_layers();
// For methods that are no operators (`x[i]`): what an override or a mode returns, or null where none is active.
PyObject* call_override_slowly(PyObject* self, const char* method, PyObject* const* args, Py_ssize_t nargs);
inline PyObject* call_override(PyObject* self, const char* method, PyObject* const* args, Py_ssize_t nargs) {
  return (as_tensor(self)->flags | t_word) & (kOverride | kModes) ? call_override_slowly(self, method, args, nargs)
                                                                  : nullptr;
}

// ---- natives: families' prologues and kernels that C++ gives by name
enum : uint8_t { kOnCpu = 0, kOnEveryDevice = 1, kOnCpuAndMeta = 2 };
struct Native {
  const char* op;
  Kernel kernel;
  uint8_t where;  // kOnCpuAndMeta skips its loops on meta; kOnEveryDevice leaves memory to the backend
  bool inplace;   // writes to its first argument itself where Call::inplace asks for it
};
void register_natives(const Native*, int n);
const Native* find_native(const std::string& op);
// From other extensions, before or after the op is defined.
void add_kernel(const char* op, const char* device_type, Kernel);
void add_loop(const char* op, DType compute, Loop);
void adopt_natives(OpRecord*);  // gives a new op what was registered for it

// ---- type promotion (promote.cpp)
// Categories as PyTorch has them: dimensioned tensors, then 0-d tensors, then Python numbers.
class Promotion {
 public:
  void add(const Tensor* t);
  void add(const Arg& number);
  DType result() const;
  bool empty() const { return !dim_ && !zero_ && !number_; }

 private:
  int dim_ = 0, zero_ = 0, number_ = 0;  // DType + 1; 0: none seen
};
DType promote(DType, DType);
bool can_cast(DType from, DType to);
DType number_dtype(const Arg& number);  // int64, the default float, its complex, or bool

// How a pointwise family picks dtypes (Op::promote).
enum class Promote : uint8_t {
  Same,       // out = compute = the promoted type
  Float,      // integers and bool compute in the default float dtype
  Bool,       // the output is bool (comparisons, predicates)
  Real,       // complex gives its real dtype (abs)
  FloatReal,  // both of them (angle)
  Where,      // the first tensor is a bool condition, the rest promote
  Scalars,    // as Same, and the op's number parameters take part (clamp, pow)
  None,       // no promotion: the first tensor's dtype
  Minus,      // as Same, and bool is refused, which has no minus
  Equal,      // as Same, and tensors of several dtypes are refused
  Quotient,   // as Same, and integers over integers, the last two inputs, are refused
};

}  // namespace rl
