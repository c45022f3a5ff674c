jemm_test(plan
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/forest_test.cpp ${CMAKE_CURRENT_LIST_DIR}/reuse_plan_test.cpp
  DEPS jemm_plan jemm_base)
