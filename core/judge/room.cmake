jemm_room(judge
  SOURCES gates.cpp stage_id.cpp
  DEPS jemm_base jemm_contract jemm_checkpoint
  PRIVATE_DEPS nlohmann_json::nlohmann_json)
