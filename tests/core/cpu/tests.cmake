jemm_test(cpu_golden SOURCES ${CMAKE_CURRENT_LIST_DIR}/golden_test.cpp
  DEPS jemm_cpu jemm_checkpoint nlohmann_json::nlohmann_json)
jemm_test(cpu_trees SOURCES ${CMAKE_CURRENT_LIST_DIR}/tree_test.cpp
  DEPS jemm_cpu jemm_checkpoint nlohmann_json::nlohmann_json)
