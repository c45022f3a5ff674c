jemm_test(base SOURCES ${CMAKE_CURRENT_LIST_DIR}/base_test.cpp ${CMAKE_CURRENT_LIST_DIR}/blocks_test.cpp
  DEPS jemm_base)
