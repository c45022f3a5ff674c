jemm_fuzzer(answer_line DEPS jemm_judge)
jemm_fuzzer(golden_case DEPS jemm_judge)
jemm_fuzzer(gates DEPS jemm_judge)
if(JEMM_FUZZ)
  return()
endif()
find_package(valijson REQUIRED)
set(here ${CMAKE_CURRENT_LIST_DIR})
jemm_test(judge SOURCES ${here}/gates_test.cpp ${here}/golden_writer_test.cpp
  ${here}/judge_test.cpp DEPS jemm_judge)
jemm_test(judge.render
  SOURCES ${here}/html_test.cpp ${here}/junit_test.cpp ${here}/redact_test.cpp
    ${here}/render_test.cpp ${here}/render_text_test.cpp ${here}/report_json_test.cpp
    ${here}/sample_report.cpp ${here}/tools.cpp
  DEPS jemm_judge nlohmann_json::nlohmann_json valijson)
jemm_test(judge.chromium
  SOURCES ${here}/chromium_test.cpp ${here}/sample_report.cpp ${here}/tools.cpp
  DEPS jemm_judge)
if(TEST judge.chromium)
  set_tests_properties(judge.chromium PROPERTIES
    SKIP_REGULAR_EXPRESSION "chromium is not installed")
endif()
