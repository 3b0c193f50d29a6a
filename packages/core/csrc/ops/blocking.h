// Whether copies to a device may go on after the call returned: non_blocking=True of to() and copy_().
#pragma once

namespace rl {

// Says so for its lifetime, to the copies of this thread.
class NonBlocking {
 public:
  explicit NonBlocking(bool on);
  ~NonBlocking();
  NonBlocking(const NonBlocking&) = delete;
  NonBlocking& operator=(const NonBlocking&) = delete;

 private:
  bool before_;
};

}  // namespace rl
