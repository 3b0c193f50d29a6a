// x[key], x[key] = value and iteration.
#include "ops.h"

namespace rl {

PyObject* get_item(Tensor*, PyObject*) { fail(PyExc_NotImplementedError, "indexing"); }
void set_item(Tensor*, PyObject*, PyObject*) { fail(PyExc_NotImplementedError, "indexing"); }
PyObject* unbind(Tensor*, int64_t) { fail(PyExc_NotImplementedError, "indexing"); }

}  // namespace rl
