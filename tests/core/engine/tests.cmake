jemm_test(engine SOURCES ${CMAKE_CURRENT_LIST_DIR}/stages_test.cpp DEPS jemm_engine)
