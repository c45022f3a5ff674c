jemm_room(judge
  SOURCES bins.cpp case_reader.cpp compare.cpp compare_answers.cpp distance.cpp faults.cpp gates.cpp golden.cpp judge.cpp report_bisection.cpp stage_id.cpp
  DEPS jemm_base jemm_contract jemm_checkpoint
  PRIVATE_DEPS nlohmann_json::nlohmann_json)
