#include <cstring>

#include "../allocator.h"
#include "tensor.h"

namespace rl {

// A storage and the memory it owns are one block: the header, then the data on the next cache line.
constexpr int64_t kHeader = 64;
static_assert(sizeof(Storage) <= kHeader, "the storage header must fit its cache line");

static Storage* make_storage(int64_t extra) {
  auto* s = static_cast<Storage*>(allocate(kHeader + extra));
  s->refs = 1;
  s->data = nullptr;
  s->nbytes = 0;
  s->owner = nullptr;
  s->alias = nullptr;
  s->version = 0;
  s->read_only = false;
  return s;
}

static bool data_is_inline(const Storage* s) { return s->data == reinterpret_cast<const char*>(s) + kHeader; }

Storage* new_storage(int64_t nbytes, Device device) {
  if (device.type == kCPU) {
    Storage* s = make_storage(nbytes);
    s->device = device;
    s->nbytes = nbytes;
    s->data = reinterpret_cast<char*>(s) + kHeader;
    return s;
  }
  Ref<> buffer;
  if (device.type != kMeta)
    buffer = Ref<>::check(PyObject_CallMethod(backend_of(device.type), "allocate", "Li", static_cast<long long>(nbytes),
                                              static_cast<int>(device.index)));
  Storage* s = make_storage(0);
  s->device = device;
  s->nbytes = nbytes;
  s->owner = buffer.release();
  return s;
}

Storage* foreign_storage(void* data, int64_t nbytes, Device device, PyObject* owner) {
  Storage* s = make_storage(0);
  s->device = device;
  s->nbytes = nbytes;
  s->data = data;
  Py_INCREF(owner);
  s->owner = owner;
  return s;
}

Storage* alias_storage(Storage* of) {
  Storage* s = make_storage(0);
  s->device = of->device;
  s->nbytes = of->nbytes;
  s->data = of->data;
  s->read_only = of->read_only;
  s->owner = of->owner;
  Py_XINCREF(s->owner);
  s->alias = retain(of);
  return s;
}

void release(Storage* s) noexcept {
  if (!s || --s->refs) return;
  Py_XDECREF(s->owner);
  if (s->alias) {
    release(s->alias);
    deallocate(s, kHeader);
  } else if (data_is_inline(s)) {
    deallocate(s, kHeader + s->nbytes);
  } else {
    if (s->data && !s->owner) deallocate(s->data, s->nbytes);
    deallocate(s, kHeader);
  }
}

}  // namespace rl
