jemm_test(tokens EXTRA
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/golden_test.cpp
  DEPS jemm_tokens)
