jemm_test(image EXTRA
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/envelope_test.cpp
  DEPS jemm_image nlohmann_json::nlohmann_json)
