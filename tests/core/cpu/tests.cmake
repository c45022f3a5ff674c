jemm_test(cpu_golden SOURCES ${CMAKE_CURRENT_LIST_DIR}/golden_test.cpp
  DEPS jemm_cpu jemm_checkpoint jemm_contract jemm_image nlohmann_json::nlohmann_json)
jemm_test(cpu_trees SOURCES ${CMAKE_CURRENT_LIST_DIR}/tree_test.cpp
  DEPS jemm_cpu jemm_checkpoint nlohmann_json::nlohmann_json)
jemm_test(cpu_ops SOURCES ${CMAKE_CURRENT_LIST_DIR}/ops_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/delta_rule_test.cpp
  DEPS jemm_cpu jemm_checkpoint nlohmann_json::nlohmann_json)
jemm_test(cpu_vision EXTRA SOURCES ${CMAKE_CURRENT_LIST_DIR}/vision_test.cpp
  DEPS jemm_cpu jemm_checkpoint nlohmann_json::nlohmann_json)
# A program of its own: it narrows the whole process's limits.
# Sanitizers need the address space that it takes away.
if(NOT JEMM_SANITIZE)
  jemm_test(cpu_threads SOURCES ${CMAKE_CURRENT_LIST_DIR}/thread_pool_test.cpp DEPS jemm_cpu)
endif()

# Machines with smaller vectors take other paths through oneDNN; what they promise is the same.
if(NOT JEMM_FUZZ)
  add_test(NAME cpu_ops.avx2 COMMAND test_cpu_ops)
  set_tests_properties(cpu_ops.avx2 PROPERTIES LABELS unit ENVIRONMENT ONEDNN_MAX_CPU_ISA=AVX2)
endif()
