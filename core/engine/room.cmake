jemm_room(engine SOURCES stages.cpp DEPS jemm_plan fmt::fmt)
