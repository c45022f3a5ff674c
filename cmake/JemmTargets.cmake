# How the project's targets are made: one library a room, its tests, its fuzzers.

add_library(jemm_flags INTERFACE)
target_compile_options(jemm_flags INTERFACE
  $<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-Wall;-Wextra;-Wconversion;-Wshadow;-Wcast-qual>
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall>
  $<$<AND:$<BOOL:${JEMM_WERROR}>,$<NOT:$<COMPILE_LANGUAGE:CUDA>>>:-Werror>
  $<$<AND:$<BOOL:${JEMM_WERROR}>,$<COMPILE_LANGUAGE:CUDA>>:-Werror=all-warnings>
  $<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-ffp-contract=off>)
if(JEMM_SANITIZE)
  target_compile_options(jemm_flags INTERFACE
    -fsanitize=${JEMM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(jemm_flags INTERFACE -fsanitize=${JEMM_SANITIZE})
endif()
if(JEMM_FUZZ)
  add_custom_target(fuzzers)
  target_compile_options(jemm_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# jemm_room(NAME [DIR core/NAME] SOURCES ... DEPS rooms and libraries ...)
#
# Target jemm_NAME. Its headers are reached as "NAME/header.h" through a folder of links that only
# targets linking the room have on their include path: an arrow that is not linked does not compile.
function(jemm_room name)
  cmake_parse_arguments(ROOM "" "DIR" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  if(NOT ROOM_DIR)
    set(ROOM_DIR ${CMAKE_SOURCE_DIR}/core/${name})
  endif()
  set(links ${CMAKE_BINARY_DIR}/rooms/${name})
  file(MAKE_DIRECTORY ${links})
  file(CREATE_LINK ${ROOM_DIR} ${links}/${name} SYMBOLIC)
  list(TRANSFORM ROOM_SOURCES PREPEND ${ROOM_DIR}/)
  add_library(jemm_${name} STATIC ${ROOM_SOURCES})
  target_include_directories(jemm_${name} PUBLIC ${links})
  target_link_libraries(jemm_${name} PUBLIC ${ROOM_DEPS} PRIVATE jemm_flags ${ROOM_PRIVATE_DEPS})
  file(GLOB headers CONFIGURE_DEPENDS ${ROOM_DIR}/*.h)
  jemm_header_check(${name} ${headers})
endfunction()

# Every header of a room compiles alone. Once is enough: not in sanitized builds.
function(jemm_header_check name)
  if(JEMM_SANITIZE)
    return()
  endif()
  set(units)
  foreach(header ${ARGN})
    get_filename_component(stem ${header} NAME)
    set(unit ${CMAKE_BINARY_DIR}/header_check/${name}/${stem}.cpp)
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${name}/${stem}\"\n")
    list(APPEND units ${unit})
  endforeach()
  if(units)
    add_library(jemm_${name}_headers OBJECT ${units})
    target_link_libraries(jemm_${name}_headers PRIVATE jemm_${name} jemm_flags)
  endif()
endfunction()

# jemm_test(NAME SOURCES ... DEPS ...): a doctest program, registered as test NAME. Cases in the
# suite "extra" need JEMM_EXTRA_GOLDEN and form a second test NAME.extra, skipped without it.
function(jemm_test name)
  cmake_parse_arguments(TEST "EXTRA" "" "SOURCES;DEPS;LABELS" ${ARGN})
  if(JEMM_FUZZ)
    return()
  endif()
  add_executable(test_${name} ${TEST_SOURCES} ${CMAKE_SOURCE_DIR}/tests/main.cpp)
  target_link_libraries(test_${name} PRIVATE ${TEST_DEPS} jemm_flags)
  target_include_directories(test_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  # Most of a build's time would go into these otherwise.
  set(level -O1)
  if(JEMM_SANITIZE)
    set(level -O0)
  endif()
  target_compile_options(test_${name} PRIVATE ${level})
  target_compile_definitions(test_${name} PRIVATE JEMM_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  if(NOT TEST_LABELS)
    set(TEST_LABELS unit)
  endif()
  add_test(NAME ${name} COMMAND test_${name} --test-suite-exclude=extra)
  set_tests_properties(${name} PROPERTIES LABELS "${TEST_LABELS}")
  if(TEST_EXTRA)
    add_test(NAME ${name}.extra COMMAND test_${name} --test-suite=extra)
    set_tests_properties(${name}.extra PROPERTIES LABELS golden
      SKIP_REGULAR_EXPRESSION "JEMM_EXTRA_GOLDEN is not set")
  endif()
endfunction()

# jemm_fuzzer(NAME DEPS ...): tests/fuzz/NAME.cpp as program fuzz_NAME, in fuzz builds only.
# Seeds lie in tests/fuzz/seeds/NAME.
function(jemm_fuzzer name)
  cmake_parse_arguments(FUZZ "" "" "DEPS" ${ARGN})
  if(JEMM_FUZZ)
    add_executable(fuzz_${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/${name}.cpp)
    target_link_libraries(fuzz_${name} PRIVATE ${FUZZ_DEPS} jemm_flags)
    target_compile_definitions(fuzz_${name} PRIVATE JEMM_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers fuzz_${name})
  endif()
endfunction()
