if(JEMM_FUZZ)
  return()
endif()
foreach(part decide diff images resume golden memory parity)
  set(extra)
  if(part MATCHES "golden|parity")
    set(extra EXTRA)
  endif()
  jemm_test(cli.${part} ${extra}
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/${part}_test.cpp ${CMAKE_CURRENT_LIST_DIR}/process.cpp
    DEPS jemm_base nlohmann_json::nlohmann_json)
  target_compile_definitions(test_cli.${part} PRIVATE JEMM_PROGRAM="$<TARGET_FILE:jemm>")
  add_dependencies(test_cli.${part} jemm)
endforeach()
