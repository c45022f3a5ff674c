if(JEMM_FUZZ)
  return()
endif()
foreach(part answers bench decide diff export golden images memory parity plan record resume reuse)
  set(extra)
  if(part MATCHES "golden|parity")
    set(extra EXTRA)
  endif()
  jemm_test(cli.${part} ${extra}
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/${part}_test.cpp ${CMAKE_CURRENT_LIST_DIR}/process.cpp
    DEPS jemm_base nlohmann_json::nlohmann_json)
  target_compile_definitions(test_cli.${part} PRIVATE JEMM_PROGRAM="$<TARGET_FILE:jemm>")
  add_dependencies(test_cli.${part} jemm)
  if(JEMM_FAULTS)
    target_compile_definitions(test_cli.${part} PRIVATE JEMM_FAULTS)
  endif()
endforeach()
jemm_test(cli.bench_parts SOURCES ${CMAKE_CURRENT_LIST_DIR}/bench_parts_test.cpp
  DEPS jemm_cli nlohmann_json::nlohmann_json)
jemm_test(cli.gpu_monitor SOURCES ${CMAKE_CURRENT_LIST_DIR}/gpu_monitor_test.cpp DEPS jemm_cli)
foreach(library cuda nvidia-ml)
  add_library(fake_${library} SHARED ${CMAKE_CURRENT_LIST_DIR}/fake_gpu.cpp)
  set_target_properties(fake_${library} PROPERTIES OUTPUT_NAME ${library} SOVERSION 1
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake_gpu)
  target_link_libraries(fake_${library} PRIVATE jemm_flags)
  add_dependencies(test_cli.gpu_monitor fake_${library})
endforeach()
set_tests_properties(cli.gpu_monitor PROPERTIES
  ENVIRONMENT "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/fake_gpu")
