find_package(ZLIB REQUIRED)
jemm_test(image EXTRA
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/envelope_test.cpp ${CMAKE_CURRENT_LIST_DIR}/decode_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/resize_test.cpp ${CMAKE_CURRENT_LIST_DIR}/size_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/golden_test.cpp ${CMAKE_CURRENT_LIST_DIR}/sweep_test.cpp
  DEPS jemm_image jemm_contract nlohmann_json::nlohmann_json ZLIB::ZLIB)
# Apart, because it watches the peak of the process's memory.
jemm_test(image_hostile SOURCES ${CMAKE_CURRENT_LIST_DIR}/hostile_test.cpp DEPS jemm_image ZLIB::ZLIB)
foreach(kind png jpeg webp)
  jemm_fuzzer(image_${kind} DEPS jemm_image)
endforeach()

jemm_fuzzer(envelope DEPS jemm_image)
