set(dir ${CMAKE_CURRENT_LIST_DIR})
jemm_test(contract EXTRA
  SOURCES ${dir}/answer_test.cpp ${dir}/golden_test.cpp ${dir}/json_members_test.cpp ${dir}/json_test.cpp
          ${dir}/python_json_test.cpp ${dir}/request_test.cpp
  DEPS jemm_contract jemm_image nlohmann_json::nlohmann_json)
jemm_fuzzer(request DEPS jemm_contract jemm_image)
