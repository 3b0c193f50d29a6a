# Builds extensions against rushlight's C API. Found by find_package(rushlight CONFIG), from the installed wheel or beside
# the sources; core itself is built with it.
#
#   rushlight_add_extension(_C
#     DESTINATION    rushlight/linalg      # package folder inside the wheel
#     SOURCES        csrc/module.cpp       # compiled once, may use Python and NumPy
#     NATIVE_SOURCES csrc/threads.cpp      # compiled once, knows no Python
#     ISA_SOURCES    csrc/kernels/lu.cpp   # compiled per instruction set with -DRL_ISA=base|avx2|avx512, knows no Python
#     TESTS          csrc/tests/test_lu.cpp)  # a program each, linked with the sources that know no Python (-DRL_TESTS=ON)
#
# The macros RL_HAVE_AVX2 and RL_HAVE_AVX512 tell every source which variants exist beside `base`.

find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module NumPy)
find_package(Threads REQUIRED)

option(RL_TESTS "Build the C++ tests" OFF)
option(RL_WERROR "Turn compiler warnings into errors" OFF)
set(RL_SANITIZE "" CACHE STRING "Sanitizers, as the compiler spells them: address,undefined")

if(RL_TESTS)
  enable_testing()
endif()
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

get_filename_component(RUSHLIGHT_INCLUDE_DIR "${CMAKE_CURRENT_LIST_DIR}/../include" ABSOLUTE)

# Compiler and linker options of every target of ours.
function(rushlight_target_options target)
  target_compile_features(${target} PRIVATE cxx_std_17)
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${target} PRIVATE "${RUSHLIGHT_INCLUDE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}/csrc")
  target_link_libraries(${target} PRIVATE Threads::Threads)
  if(MSVC)
    target_compile_options(${target} PRIVATE /permissive- /utf-8 /bigobj /EHsc /W3 $<$<BOOL:${RL_WERROR}>:/WX>)
    target_compile_definitions(${target} PRIVATE NOMINMAX _USE_MATH_DEFINES _CRT_SECURE_NO_WARNINGS)
    return()
  endif()
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers $<$<BOOL:${RL_WERROR}>:-Werror>
    -fno-math-errno -fno-trapping-math -ffunction-sections -fdata-sections)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-cast-function-type)  # method tables cast, as CPython asks
  else()
    target_compile_options(${target} PRIVATE -Wno-unknown-pragmas -Wno-pass-failed  # hints for GCC's vectoriser
      -Wno-bitwise-conditional-parentheses -Wno-bitwise-instead-of-logical)
  endif()
  target_link_options(${target} PRIVATE $<IF:$<BOOL:${APPLE}>,-Wl$<COMMA>-dead_strip,-Wl$<COMMA>--gc-sections>)
  if(RL_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${RL_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
    target_link_options(${target} PRIVATE -fsanitize=${RL_SANITIZE})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)  # GCC's own intrinsics, instrumented
    endif()
  endif()
endfunction()

# Sets `variable` to the instruction sets to build for, `base` first, and <variable>_<isa> to the flag of each.
function(_rushlight_instruction_sets variable)
  set(isas base)
  set(${variable}_base "" PARENT_SCOPE)
  set(${variable}_avx2 -march=x86-64-v3 PARENT_SCOPE)
  set(${variable}_avx512 -march=x86-64-v4 PARENT_SCOPE)
  set(processor "${CMAKE_SYSTEM_PROCESSOR}")
  if(APPLE AND CMAKE_OSX_ARCHITECTURES)
    set(processor "${CMAKE_OSX_ARCHITECTURES}")
  endif()
  # MSVC has no __builtin_cpu_supports, with which the variant is chosen at run time.
  if(processor MATCHES "^(x86_64|AMD64|amd64)$" AND NOT MSVC)
    include(CheckCXXCompilerFlag)
    check_cxx_compiler_flag(-march=x86-64-v3 RUSHLIGHT_COMPILES_AVX2)
    check_cxx_compiler_flag(-march=x86-64-v4 RUSHLIGHT_COMPILES_AVX512)
    if(RUSHLIGHT_COMPILES_AVX2)
      list(APPEND isas avx2)
    endif()
    if(RUSHLIGHT_COMPILES_AVX512)
      list(APPEND isas avx512)
    endif()
  endif()
  set(${variable} "${isas}" PARENT_SCOPE)
endfunction()

function(rushlight_add_extension target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "DESTINATION" "SOURCES;NATIVE_SOURCES;ISA_SOURCES;TESTS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_DESTINATION OR NOT arg_SOURCES)
    message(FATAL_ERROR "rushlight_add_extension(${target}): needs DESTINATION and SOURCES, got ${ARGN}")
  endif()

  _rushlight_instruction_sets(isas)
  string(TOUPPER "${isas}" definitions)
  list(TRANSFORM definitions PREPEND RL_HAVE_)
  set(objects "")
  if(arg_ISA_SOURCES)
    foreach(isa IN LISTS isas)
      add_library(${target}_${isa} OBJECT ${arg_ISA_SOURCES})
      rushlight_target_options(${target}_${isa})
      target_compile_options(${target}_${isa} PRIVATE ${isas_${isa}})
      target_compile_definitions(${target}_${isa} PRIVATE ${definitions} RL_ISA=${isa})
      list(APPEND objects $<TARGET_OBJECTS:${target}_${isa}>)
    endforeach()
  endif()
  if(arg_NATIVE_SOURCES)
    add_library(${target}_native OBJECT ${arg_NATIVE_SOURCES})
    rushlight_target_options(${target}_native)
    target_compile_definitions(${target}_native PRIVATE ${definitions})
    list(APPEND objects $<TARGET_OBJECTS:${target}_native>)
  endif()

  python_add_library(${target} MODULE WITH_SOABI ${arg_SOURCES} ${objects})
  rushlight_target_options(${target})
  target_compile_definitions(${target} PRIVATE ${definitions})
  target_link_libraries(${target} PRIVATE Python::NumPy)
  install(TARGETS ${target} DESTINATION "${arg_DESTINATION}" COMPONENT extension)

  if(RL_TESTS)
    add_custom_target(rushlight_tests)
    foreach(source IN LISTS arg_TESTS)
      get_filename_component(test "${source}" NAME_WE)
      add_executable(${test} ${source} ${objects})
      rushlight_target_options(${test})
      target_compile_definitions(${test} PRIVATE ${definitions})
      add_dependencies(rushlight_tests ${test})
      add_test(NAME ${test} COMMAND ${test})
    endforeach()
  endif()
endfunction()
