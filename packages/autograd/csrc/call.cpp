#include "call.h"

namespace rl {

const Op* find_op(const char* name) {
  if (const Op* op = api->find_op(name)) return op;
  raise(PyExc_NotImplementedError, "autograd: needs the operator '%s', which is not registered.", name);
}

std::string base_name(const Op* op) {
  std::string name = op->name;
  size_t space = name.find("::");
  if (space != std::string::npos) name.erase(0, space + 2);
  return name.substr(0, name.find('.'));
}

namespace ops {
OpHandle add("add.Tensor"), sub("sub.Tensor"), mul("mul.Tensor"), div("div.Tensor"), pow("pow.Tensor_Tensor"),
    pow_scalar("pow.Tensor_Scalar"), pow_of_scalar("pow.Scalar"), neg("neg");
OpHandle eq("eq.Tensor"), ne("ne.Tensor"), lt("lt.Tensor"), le("le.Tensor"), gt("gt.Tensor"), ge("ge.Tensor");
OpHandle clone("clone"), sum("sum"), expand("expand"), unsqueeze("unsqueeze"), reshape("reshape"),
    conj("conj_physical"), real("real");
OpHandle cast("_cast"), move("_move"), copy_("copy_"), as_strided("as_strided"), narrow("narrow"), arange("arange"),
    cat("cat"), stack("stack"), index_add("index_add"), view_as("view_as"), new_zeros("new_zeros"),
    view_as_real("view_as_real"), view_as_complex("view_as_complex");
}  // namespace ops

}  // namespace rl
