jemm_fuzzer(bench_baseline DEPS jemm_bench)
jemm_fuzzer(bench_sweep DEPS jemm_bench)
if(JEMM_FUZZ)
  return()
endif()
set(here ${CMAKE_CURRENT_LIST_DIR})
jemm_test(bench
  SOURCES ${here}/baseline_test.cpp ${here}/measure_test.cpp ${here}/operations_test.cpp
    ${here}/outputs_test.cpp ${here}/report_test.cpp ${here}/sample_report.cpp
    ${here}/statistics_test.cpp ${here}/sweep_test.cpp
  DEPS jemm_bench nlohmann_json::nlohmann_json)
