#include "parallel.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#if defined(__linux__)
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <condition_variable>
#endif
#if !defined(_WIN32)
#include <pthread.h>
#include <signal.h>
#endif
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace rl {
namespace {

void cpu_relax() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#elif defined(__aarch64__) && !defined(_MSC_VER)
  __asm__ __volatile__("yield");
#endif
}

// Sleep while `word` holds `expected`, and wake sleepers: a futex, or one condition variable where there is none.
#if defined(__linux__)
void wait_word(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
void wake_word(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}
#else
struct Bell {
  std::mutex mutex;
  std::condition_variable rung;
};
Bell& bell() {
  static Bell* b = new Bell;  // outlives the workers, which are never joined
  return *b;
}
void wait_word(std::atomic<uint32_t>& word, uint32_t expected) {
  std::unique_lock<std::mutex> lock(bell().mutex);
  bell().rung.wait(lock, [&] { return word.load() != expected; });
}
void wake_word(std::atomic<uint32_t>&, int) {
  {
    std::lock_guard<std::mutex> lock(bell().mutex);
  }
  bell().rung.notify_all();
}
#endif

// The kernel likes to wake a worker on the core of its waker, where the two would take turns: step aside.
#if defined(__linux__)
int current_cpu() { return sched_getcpu(); }
void leave_cpu(int cpu) {
  cpu_set_t allowed;
  if (cpu != sched_getcpu() || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof(others), &others) != 0) return;
  sched_setaffinity(0, sizeof(allowed), &allowed);
}
#else
int current_cpu() { return -1; }
void leave_cpu(int) {}
#endif

constexpr int kWorkerSpins = 512;    // about 25 us of pauses before a worker sleeps: from one op to the next
constexpr int kCallerSpins = 256;    // about 10 us before a caller sleeps until the last chunk is done
constexpr int kChunksPerThread = 6;  // lets a thread that has a core take the share of one that has none
constexpr int kChunksPerGrain = 4;
constexpr int kLeftToOwner = 2;
// Chunks of many elements begin where a cache line does: a vector that crosses two lines costs twice.
constexpr int64_t kLine = 64, kManyLines = 16;
constexpr double kWorthWaking = 50000;       // nanoseconds of work that pay for waking a worker
constexpr double kWorthSharing = 3500;       // ... for handing a part to one that is awake
constexpr int64_t kLoopNanoseconds = 60000;  // calls that follow each other in less, beside their work, are a loop
constexpr double kSlowdown = 4;              // of work that was estimated in the cache and has to go to memory
constexpr int kLoopCalls = 8;
constexpr int kMaxThreads = 1024;
constexpr int kMaxShares = 64;

thread_local bool t_in_region = false;

struct Job {
  // Chunks that one thread takes first: calls on the same memory find it in the cache of the same core.
  struct Share {
    alignas(64) std::atomic<int64_t> next{0};
    int64_t begin = 0, end = 0;
    std::atomic<bool> owned{false};  // its own thread is at work on it
  };
  void (*fn)(void*, int64_t, int64_t) = nullptr;
  void* ctx = nullptr;
  int64_t begin = 0, end = 0, chunk = 0, chunks = 0;
  Share shares[kMaxShares];
  int nshares = 1;
  bool descending = false;  // every other job: what the last one touched last is still in the cache
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // written by the thread that set `failed`

  void divide(int threads) {
    nshares = std::min(threads, kMaxShares);
    descending = !descending;
    for (int i = 0; i < nshares; ++i) {
      shares[i].begin = chunks * i / nshares;
      shares[i].end = chunks * (i + 1) / nshares;
      shares[i].next.store(shares[i].begin, std::memory_order_relaxed);
      shares[i].owned.store(false, std::memory_order_relaxed);
    }
  }

  // The thread's own share, then what the others have not started.
  void work(int seat) {
    t_in_region = true;
    if (seat < nshares) shares[seat].owned.store(true, std::memory_order_relaxed);
    for (int k = 0; k < nshares; ++k) {
      Share& share = shares[(seat + k) % nshares];
      // The last chunks of a thread at work end sooner there: their memory is in its cache.
      const int64_t left =
          k == 0 || !share.owned.load(std::memory_order_relaxed) ? 0 : (share.end - share.begin) / kLeftToOwner;
      while (share.end - share.next.load(std::memory_order_relaxed) > left) {
        const int64_t turn = share.next.fetch_add(1, std::memory_order_relaxed);
        if (turn >= share.end) break;
        const int64_t i = descending ? share.begin + share.end - 1 - turn : turn;
        const int64_t b = begin + i * chunk;
        try {
          fn(ctx, b, i + 1 == chunks ? end : b + chunk);
        } catch (...) {
          if (!failed.exchange(true)) error = std::current_exception();
          for (int other = 0; other < nshares; ++other) shares[other].next.store(chunks, std::memory_order_relaxed);
        }
      }
    }
    t_in_region = false;
  }
};

class Pool {
 public:
  // False if another thread's job holds the workers.
  bool try_acquire() { return !busy_.exchange(true, std::memory_order_acquire); }
  void release() { busy_.store(false, std::memory_order_release); }

  bool awake() const { return started_.load(std::memory_order_relaxed) > sleepers_.load(std::memory_order_relaxed); }

  // Fills `job` first, then call run() with the number of workers that may join. Needs try_acquire().
  void run(int helpers) {
    helpers = std::min(helpers, start_workers(helpers));
    caller_cpu_.store(current_cpu(), std::memory_order_relaxed);
    state_.store(static_cast<uint32_t>(helpers) << kSeatShift, std::memory_order_release);
    epoch_.fetch_add(1);
    if (helpers > 0 && sleepers_.load() > 0) wake_word(epoch_, helpers);
    job.work(0);
    // Close the seats: a worker that has not joined never will, one that has is at work on its last chunk.
    uint32_t state = state_.fetch_and(kActiveMask, std::memory_order_acq_rel) & kActiveMask;
    for (int spin = 0; state != 0 && spin < kCallerSpins; ++spin) {
      cpu_relax();
      state = state_.load(std::memory_order_acquire);
    }
    if (state != 0) {
      state = state_.fetch_or(kCallerSleeps, std::memory_order_acq_rel) | kCallerSleeps;
      while ((state & kActiveMask) != 0) {
        wait_word(state_, state);
        state = state_.load(std::memory_order_acquire);
      }
    }
  }

  Job job;

 private:
  // state_: workers at work (low 15 bits), a flag that the caller sleeps, workers that may still join (high 16 bits).
  static constexpr uint32_t kActiveMask = 0x7fff, kCallerSleeps = 0x8000;
  static constexpr int kSeatShift = 16;

  int start_workers(int wanted) {
    while (workers_ < wanted) {
#if !defined(_WIN32)
      sigset_t all, old;  // signals belong to the threads of the program
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &old);
#endif
      bool started = true;
      try {
        std::thread([this, seen = epoch_.load()] { work_forever(seen); }).detach();
      } catch (const std::system_error&) {  // out of threads: those that exist do the work
        started = false;
      }
#if !defined(_WIN32)
      pthread_sigmask(SIG_SETMASK, &old, nullptr);
#endif
      if (!started) break;
      started_.store(++workers_, std::memory_order_relaxed);
    }
    return workers_;
  }

  void work_forever(uint32_t seen) {
    for (;;) {
      uint32_t state = state_.load(std::memory_order_acquire);
      while ((state >> kSeatShift) != 0) {
        if (!state_.compare_exchange_weak(state, state - (1u << kSeatShift) + 1, std::memory_order_acq_rel)) continue;
        job.work(static_cast<int>(state >> kSeatShift));
        state = state_.fetch_sub(1, std::memory_order_acq_rel) - 1;
        if (state == kCallerSleeps) wake_word(state_, INT_MAX);
        break;
      }
      for (int spin = 0; spin < kWorkerSpins && epoch_.load(std::memory_order_acquire) == seen; ++spin) cpu_relax();
      if (epoch_.load(std::memory_order_acquire) == seen) {
        sleepers_.fetch_add(1);
        wait_word(epoch_, seen);
        sleepers_.fetch_sub(1);
        leave_cpu(caller_cpu_.load(std::memory_order_relaxed));
      }
      seen = epoch_.load(std::memory_order_acquire);
    }
  }

  alignas(64) std::atomic<uint32_t> state_{0};
  alignas(64) std::atomic<uint32_t> epoch_{0};
  std::atomic<int> sleepers_{0}, started_{0};
  std::atomic<int> caller_cpu_{-1};
  std::atomic<bool> busy_{false};
  int workers_ = 0;  // guarded by busy_
};

// Never destroyed: the workers use it until the process ends. After a fork the child makes a new one.
std::atomic<Pool*> g_pool{nullptr};

Pool& pool() {
  Pool* p = g_pool.load(std::memory_order_acquire);
  if (p != nullptr) return *p;
#if !defined(_WIN32)
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { g_pool.store(nullptr, std::memory_order_relaxed); });
  static_cast<void>(registered);
#endif
  Pool* fresh = new Pool;
  if (g_pool.compare_exchange_strong(p, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;
  return *p;
}

int threads_from_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return 0;
  const long n = std::strtol(text, nullptr, 10);  // OMP_NUM_THREADS may be a list: the first level counts
  return n >= 1 ? static_cast<int>(std::min<long>(n, kMaxThreads)) : 0;
}

int default_threads() {
  for (const char* name : {"RUSHLIGHT_NUM_THREADS", "OMP_NUM_THREADS"}) {
    if (const int n = threads_from_environment(name)) return n;
  }
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::atomic<int> g_threads{0};  // 0: not asked for yet

}  // namespace

int num_threads() {
  int n = g_threads.load(std::memory_order_relaxed);
  if (n != 0) return n;
  int unset = 0;
  n = default_threads();
  return g_threads.compare_exchange_strong(unset, n) ? n : unset;
}

void set_num_threads(int n) {
  if (n < 1) {
    throw std::invalid_argument("set_num_threads: expected positive number of threads, got n=" + std::to_string(n) +
                                ".");
  }
  g_threads.store(std::min(n, kMaxThreads), std::memory_order_relaxed);
}

bool in_parallel_region() { return t_in_region; }

bool worth_threads(double nanoseconds) {
  if (nanoseconds >= kWorthWaking) return true;
  if (nanoseconds < kWorthSharing) return false;
  if (pool().awake()) return true;
  // A loop of such calls wakes the workers once, and finds them awake from then on.
  static std::atomic<int64_t> last{0};
  static std::atomic<int> streak{0};
  const int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
  const int64_t most = kLoopNanoseconds + static_cast<int64_t>(kSlowdown * nanoseconds);
  const bool follows = now - last.exchange(now, std::memory_order_relaxed) < most;
  streak.store(follows ? streak.load(std::memory_order_relaxed) + 1 : 0, std::memory_order_relaxed);
  return streak.load(std::memory_order_relaxed) >= kLoopCalls;
}

void parallel_run(int64_t begin, int64_t end, int64_t grain, void (*fn)(void*, int64_t, int64_t), void* ctx) {
  if (end <= begin) return;
  const int64_t n = end - begin;
  grain = std::max<int64_t>(grain, 1);
  const int64_t threads = std::min<int64_t>(num_threads(), (n - 1) / grain + 1);
  if (threads <= 1 || t_in_region) return fn(ctx, begin, end);
  Pool& p = pool();
  if (!p.try_acquire()) return fn(ctx, begin, end);
  Job& job = p.job;
  job.fn = fn;
  job.ctx = ctx;
  job.begin = begin;
  job.end = end;
  job.chunk = std::max((grain - 1) / kChunksPerGrain + 1, (n - 1) / (threads * kChunksPerThread) + 1);
  if (job.chunk > kManyLines * kLine) job.chunk = (job.chunk + kLine - 1) / kLine * kLine;
  job.chunks = (n - 1) / job.chunk + 1;
  job.divide(static_cast<int>(threads));
  job.failed.store(false, std::memory_order_relaxed);
  p.run(static_cast<int>(std::min(threads, job.chunks)) - 1);
  std::exception_ptr error;
  std::swap(error, job.error);
  p.release();
  if (error) std::rethrow_exception(error);
}

}  // namespace rl
