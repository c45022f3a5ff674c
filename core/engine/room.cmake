jemm_room(engine SOURCES stages.cpp DEPS jemm_plan fmt::fmt)
if(JEMM_FAULTS)
  target_compile_definitions(jemm_engine PUBLIC JEMM_FAULTS)
endif()
