// The dispatch layer of rushlight.amp.autocast: casts the arguments of an op to the dtype that the op is best run in.
#include "autocast.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "object.h"

namespace rl {
namespace {

constexpr uint32_t kAutocast = kFirstFreeThreadBit << 3;

// What becomes of float16, bfloat16 and float32 arguments; float64 and everything else stays as it is.
enum class Policy : uint8_t {
  None,
  Same,   // as they are, in the ops that it is composed of too
  Half,   // to the dtype of the context
  Full,   // to float32
  Widest  // to float32 where one of them is, else to the dtype of the context
};

struct Rule {
  Policy cpu, other;
  const char* ops;  // names between spaces
};

// The lists of PyTorch's documentation, "Autocast Op Reference": https://pytorch.org/docs/stable/amp.html
constexpr Rule kRules[] = {
    {Policy::Half, Policy::Half,
     "addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d "
     "linalg::multi_dot linalg::vecdot matmul mm nn::linear nn::linear_2d nn::scaled_dot_product_attention prelu "
     "rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell lstm"},
    {Policy::None, Policy::Half, "addmv addr gru gru_cell lstm_cell mv"},
    {Policy::Full, Policy::Full,
     "binary_cross_entropy_with_logits cdist cosine_embedding_loss ctc_loss hinge_embedding_loss kl_div "
     "margin_ranking_loss nn::_absolute_error nn::_bce_logits nn::_huber nn::_smooth_l1 nn::_soft_margin "
     "nn::_squared_error "
     "nn::cross_entropy_loss nn::ctc nn::multi_margin_loss nn::multilabel_margin_loss nn::nll_loss_nd "
     "poisson_nll_loss prod triplet_margin_loss"},
    {Policy::Full, Policy::None,
     "cholesky cholesky_inverse cholesky_solve fft::fft fft::fft2 fft::fftn fft::hfft fft::hfft2 fft::hfftn fft::ifft "
     "fft::ifft2 fft::ifftn fft::ihfft fft::ihfft2 fft::ihfftn fft::irfft fft::irfft2 fft::irfftn fft::rfft "
     "fft::rfft2 fft::rfftn geqrf inverse istft linalg::cholesky linalg::cholesky_ex linalg::cond linalg::eig "
     "linalg::eigh linalg::eigvals linalg::eigvalsh linalg::householder_product linalg::inv linalg::inv_ex "
     "linalg::lstsq linalg::matrix_rank linalg::qr linalg::solve linalg::svd linalg::svdvals linalg::tensorinv "
     "linalg::tensorsolve lu_solve max_pool3d nanquantile nn::adaptive_avg_pool3d nn::adaptive_max_pool3d "
     "nn::avg_pool3d nn::binary_cross_entropy nn::fractional_max_pool2d nn::fractional_max_pool3d nn::max_unpool "
     "nn::max_unpool_nd orgqr ormqr pinverse polar qr quantile stft svd trace triangular_solve view_as_complex"},
    {Policy::Full, Policy::Widest, "grid_sampler grid_sampler_2d grid_sampler_3d nn::grid_sample"},
    {Policy::None, Policy::Full,
     "acos asin cosh cosine_similarity cumprod cumsum dist erfinv exp expm1 group_norm layer_norm log log10 log1p log2 "
     "log_softmax nn::softplus norm pdist pow reciprocal renorm rsqrt sinh softmax sum tan"},
    {Policy::Widest, Policy::Widest, "cat index_copy stack"},
    {Policy::None, Policy::Widest, "addcdiv addcmul atan2 cross dot index_put scatter_add tensordot"},
    {Policy::Same, Policy::Widest, "bilinear"},
    {Policy::Same, Policy::None, "inner"},
};

struct Policies {
  Policy cpu = Policy::None, other = Policy::None;
};

const Policies& policies_of(const Op* op) {
  static auto* by_name = [] {
    auto* table = new std::unordered_map<std::string, Policies>();
    for (const Rule& rule : kRules) {
      const std::string names = rule.ops;
      for (size_t begin = 0, end; begin < names.size(); begin = end + 1) {
        end = std::min(names.find(' ', begin), names.size());
        (*table)[names.substr(begin, end - begin)] = {rule.cpu, rule.other};
      }
    }
    return table;
  }();
  static auto* by_op = new std::unordered_map<const Op*, Policies>();
  const auto found = by_op->find(op);
  if (found != by_op->end()) return found->second;
  const std::string name = op->name;
  const auto rule = by_name->find(name.substr(0, name.find('.')));  // for all overloads
  return by_op->emplace(op, rule == by_name->end() ? Policies() : rule->second).first->second;
}

// A parameter's cast, kept until the outermost context is left.
struct Kept {
  Ref<Tensor> original, cast;
  const char* data;  // with the version: what was cast
  uint32_t version;
};

struct State {
  DType dtype[kMaxDeviceTypes];
  bool on[kMaxDeviceTypes] = {};
  bool keeps = true;
  int64_t depth = 0;
  std::unordered_map<const Tensor*, Kept> kept;
  State() {
    std::fill(std::begin(dtype), std::end(dtype), DType::Float16);
    dtype[kCPU] = DType::BFloat16;
  }
};

// The thread's state, never freed: at the end of a thread nobody could drop the references.
State& state() {
  thread_local State* s = new State();
  return *s;
}

bool is_castable(const Tensor* t, const Call& c) {
  const bool is_narrow = t->dtype == DType::Float32 || t->dtype == DType::Float16 || t->dtype == DType::BFloat16;
  return is_narrow && !(t->flags & kWrapped) && t->device.type == c.device.type;
}

bool is_current(const Kept& kept, const Tensor* t, DType dtype) {
  const bool is_recorded = kept.cast->flags & kRequiresGrad;
  return kept.data == t->data && kept.version == t->storage->version && kept.cast->dtype == dtype &&
         (is_recorded || !grad_enabled());
}

// `t` in `dtype`, in its graph.
Ref<Tensor> cast(Tensor* t, DType dtype) {
  if (t->dtype == dtype) return Ref<Tensor>::borrow(t);
  State& s = state();
  const bool keeps = s.keeps && s.depth > 0 && t->flags & kRequiresGrad && t->grad_fn == nullptr &&
                     t->base == nullptr && t->dtype == DType::Float32;
  if (keeps) {
    const auto found = s.kept.find(t);
    if (found != s.kept.end() && is_current(found->second, t, dtype)) return found->second.cast;
  }
  static const Op* to = api->find_op("to.dtype");
  Arg args[] = {arg(t), arg(dtype)};
  auto result = Ref<Tensor>::check(api->call(to, args, 2));
  if (keeps) s.kept.insert_or_assign(t, Kept{Ref<Tensor>::borrow(t), result, t->data, t->storage->version});
  return result;
}

DType target_of(Policy policy, const Call& c) {
  const auto is_wide = [&](const Tensor* t) { return t && t->dtype == DType::Float32 && is_castable(t, c); };
  if (policy == Policy::Full) return DType::Float32;
  for (int i = 0; policy == Policy::Widest && i < c.op->nparams; ++i) {
    const Arg& a = c.args[i];
    if (a.is_tensor() && is_wide(a.tensor)) return DType::Float32;
    if (a.kind == Kind::Tensors && std::any_of(a.tensors, a.tensors + a.count, is_wide)) return DType::Float32;
  }
  return state().dtype[c.device.type];
}

PyObject* autocast(Call& c, void*) {
  // What is written to has the dtype that it has.
  if (!state().on[c.device.type] || c.inplace || c.out) return api->redispatch(c);
  const Policies& policies = policies_of(c.op);
  const Policy policy = c.device.type == kCPU ? policies.cpu : policies.other;
  if (policy == Policy::None) return api->redispatch(c);
  return guard([&] {
    std::vector<Arg> args(c.args, c.args + c.op->nparams);
    std::vector<Ref<Tensor>> held;
    std::vector<std::vector<Tensor*>> lists;
    if (policy != Policy::Same) {
      const DType dtype = target_of(policy, c);
      const auto replace = [&](Tensor*& t) {
        if (!t || !is_castable(t, c)) return;
        held.push_back(cast(t, dtype));
        t = held.back().get();
      };
      for (Arg& a : args) {
        if (a.is_tensor()) replace(a.tensor);
        if (a.kind != Kind::Tensors) continue;
        lists.emplace_back(a.tensors, a.tensors + a.count);
        std::for_each(lists.back().begin(), lists.back().end(), replace);
        a.tensors = lists.back().data();
      }
    }
    Call below = c;
    below.args = args.data();
    ThreadBitsScope off(0, kAutocast);  // what the op is composed of runs in the dtypes that it was given
    return api->redispatch(below);
  });
}

// -- the functions of the extension

// The index of a device type that is registered, or -1.
int device_index(const char* name) {
  for (uint8_t i = 0; i < kMaxDeviceTypes; ++i) {
    Arg a;
    a.kind = Kind::Device;
    a.device = {i, -1};
    auto device = Ref<>::check(api->arg_to_object(a));
    auto type = Ref<>::check(PyObject_GetAttrString(device.get(), "type"));
    if (PyUnicode_CompareWithASCIIString(type.get(), name) == 0) return i;
  }
  raise(PyExc_RuntimeError, "autocast: no device type is called '%s'.", name);
}

PyObject* get_mode(PyObject*, PyObject* args) {
  return guard([&] {
    const char* name;
    if (!PyArg_ParseTuple(args, "s", &name)) throw PythonError();
    const int i = device_index(name);
    return Py_BuildValue("(NN)", PyBool_FromLong(state().on[i]), PyBool_FromLong(state().dtype[i] == DType::BFloat16));
  });
}

PyObject* set_mode(PyObject*, PyObject* args) {
  return guard([&] {
    const char* name;
    int on, is_bfloat16;
    if (!PyArg_ParseTuple(args, "spp", &name, &on, &is_bfloat16)) throw PythonError();
    const int i = device_index(name);
    State& s = state();
    s.on[i] = on != 0;
    s.dtype[i] = is_bfloat16 ? DType::BFloat16 : DType::Float16;
    const bool any = std::find(std::begin(s.on), std::end(s.on), true) != std::end(s.on);
    uint32_t& word = *api->thread_word();
    word = any ? word | kAutocast : word & ~kAutocast;
    return Py_NewRef(Py_None);
  });
}

PyObject* clear_cache(PyObject*, PyObject*) {
  const auto dropped = std::exchange(state().kept, {});  // the end of a tensor may run code that comes back here
  Py_RETURN_NONE;
}

PyObject* is_cache_enabled(PyObject*, PyObject*) { return PyBool_FromLong(state().keeps); }

PyObject* set_cache_enabled(PyObject*, PyObject* value) {
  const int on = PyObject_IsTrue(value);
  if (on < 0) return nullptr;
  state().keeps = on;
  Py_RETURN_NONE;
}

PyObject* enter(PyObject*, PyObject*) { return PyLong_FromLongLong(++state().depth); }
PyObject* leave(PyObject*, PyObject*) { return PyLong_FromLongLong(--state().depth); }

PyObject* install(PyObject*, PyObject*) {
  return guard([&] {
    const Layer layer{"autocast", 120, kAutocast, 0, autocast, nullptr, true};
    check(api->register_layer(&layer));
    return Py_NewRef(Py_None);
  });
}

PyMethodDef functions[] = {
    {"autocast_mode", get_mode, METH_VARARGS, "(enabled, whether its dtype is bfloat16) of a device type."},
    {"set_autocast_mode", set_mode, METH_VARARGS, "Sets whether a device type is cast, and whether to bfloat16."},
    {"clear_autocast_cache", clear_cache, METH_NOARGS, "Forgets the casts of parameters that are kept."},
    {"is_autocast_cache_enabled", is_cache_enabled, METH_NOARGS, "Whether casts of parameters are kept."},
    {"set_autocast_cache_enabled", set_cache_enabled, METH_O, "Sets whether casts of parameters are kept."},
    {"autocast_increment_nesting", enter, METH_NOARGS, "Enters a context; returns how many there are now."},
    {"autocast_decrement_nesting", leave, METH_NOARGS, "Leaves a context; returns how many there are now."},
    {"install_autocast", install, METH_NOARGS, "Registers the dispatch layer."},
    {}};

}  // namespace

void init_autocast(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace rl
