jemm_room(bench
  SOURCES baseline.cpp doubts.cpp measure.cpp operations.cpp outputs.cpp report.cpp
    report_json.cpp report_text.cpp statistics.cpp sweep.cpp
  DEPS jemm_base jemm_checkpoint jemm_engine jemm_plan
  PRIVATE_DEPS nlohmann_json::nlohmann_json)
