jemm_room(plan SOURCES forest.cpp runs.cpp DEPS jemm_base)
