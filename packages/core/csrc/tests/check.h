// CHECK(condition): ends a test whose condition does not hold, naming it and its line; also where NDEBUG is defined.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(x)                                                                 \
  do {                                                                           \
    if (!(x)) {                                                                  \
      std::fprintf(stderr, "%s:%d: CHECK(%s) failed\n", __FILE__, __LINE__, #x); \
      std::abort();                                                              \
    }                                                                            \
  } while (0)
