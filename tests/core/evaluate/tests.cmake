jemm_test(evaluate SOURCES ${CMAKE_CURRENT_LIST_DIR}/images_test.cpp
  DEPS jemm_evaluate nlohmann_json::nlohmann_json)
