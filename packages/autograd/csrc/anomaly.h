// Anomaly mode: remembers where forward operators were called and tensors written to, and looks for NaN in backward.
#pragma once
#include <string>

#include "node.h"

namespace rl {

struct Anomaly {
  bool enabled = false;
  bool check_nan = true;
};
extern Anomaly g_anomaly;

void attach_trace_now(Node*);
inline void attach_trace(Node* n) {
  if (g_anomaly.enabled) attach_trace_now(n);
}
inline bool anomaly_enabled() { return g_anomaly.enabled; }
// Where `storage` was written to first since `version`, as "add_ at train.py:12, in step"; empty: unknown.
std::string write_since(const Storage* storage, uint32_t version);
// Runs the node; an error is preceded by a warning that shows the forward call, NaN becomes an error.
void backward_with_trace(Node*, PyObject** grads, PyObject** results, const Needs&);

void register_anomaly_layer();
void init_anomaly(PyObject* module);

}  // namespace rl
