jemm_test(image EXTRA
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/envelope_test.cpp ${CMAKE_CURRENT_LIST_DIR}/golden_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/sweep_test.cpp
  DEPS jemm_image jemm_contract nlohmann_json::nlohmann_json)
