jemm_test(checkpoint SOURCES ${CMAKE_CURRENT_LIST_DIR}/fixtures_test.cpp DEPS jemm_checkpoint)
