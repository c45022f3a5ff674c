jemm_test(evaluate
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/images_test.cpp ${CMAKE_CURRENT_LIST_DIR}/passes_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/reuse_test.cpp
  DEPS jemm_evaluate nlohmann_json::nlohmann_json)
jemm_test(evaluate_exact SOURCES ${CMAKE_CURRENT_LIST_DIR}/reuse_exact_test.cpp
  DEPS jemm_evaluate jemm_cpu nlohmann_json::nlohmann_json)
