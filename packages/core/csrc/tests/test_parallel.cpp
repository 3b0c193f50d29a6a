// The thread pool: coverage of the range, nesting, exceptions, concurrent callers, fork.
#include "../parallel.h"
#include "check.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace {

void check_covers(int64_t begin, int64_t end, int64_t grain) {
  std::vector<int> hits(end > begin ? end - begin : 0);
  rl::parallel_for(begin, end, grain, [&](int64_t b, int64_t e) {
    CHECK(b < e);
    for (int64_t i = b; i < e; ++i) ++hits[i - begin];
  });
  for (int h : hits) CHECK(h == 1);
}

void test_coverage() {
  for (int threads : {1, 2, 3, 8}) {
    rl::set_num_threads(threads);
    CHECK(rl::num_threads() == threads);
    for (int64_t n : {0, 1, 2, 7, 64, 1000, 4097}) {
      for (int64_t grain : {0, 1, 3, 64, 5000}) check_covers(-5, n - 5, grain);
    }
  }
  check_covers(3, -3, 1);
}

void test_nested() {
  rl::set_num_threads(4);
  std::atomic<int> sum{0};
  rl::parallel_for(0, 8, 1, [&](int64_t b, int64_t e) {
    CHECK(rl::in_parallel_region());
    const auto outer = std::this_thread::get_id();
    for (int64_t i = b; i < e; ++i) {
      rl::parallel_for(0, 100, 1, [&](int64_t ib, int64_t ie) {
        CHECK(std::this_thread::get_id() == outer);
        sum += static_cast<int>(ie - ib);
      });
    }
  });
  CHECK(sum == 800);
  CHECK(!rl::in_parallel_region());
}

void test_exception() {
  rl::set_num_threads(4);
  for (int round = 0; round < 200; ++round) {
    bool caught = false;
    try {
      rl::parallel_for(0, 64, 1, [&](int64_t b, int64_t) {
        if (b >= 16) throw std::runtime_error("chunk");
      });
    } catch (const std::runtime_error&) {
      caught = true;
    }
    CHECK(caught);
    check_covers(0, 64, 1);
  }
  bool refused = false;
  try {
    rl::set_num_threads(0);
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
}

void test_concurrent_callers() {
  rl::set_num_threads(3);
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([] {
      for (int i = 0; i < 2000; ++i) check_covers(0, 97, 5);
    });
  }
  for (auto& c : callers) c.join();
}

void test_fork() {
#if !defined(_WIN32)
  rl::set_num_threads(2);
  check_covers(0, 1000, 1);
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 100; ++i) check_covers(0, 1000, 1);
    _exit(0);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  check_covers(0, 1000, 1);
#endif
}

}  // namespace

int main() {
  test_fork();  // under ThreadSanitizer: TSAN_OPTIONS=die_after_fork=0
  test_coverage();
  test_nested();
  test_exception();
  test_concurrent_callers();
  std::puts("parallel: ok");
}
