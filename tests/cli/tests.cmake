if(JEMM_FUZZ)
  return()
endif()
foreach(part bench decide diff export images resume golden memory parity record)
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
