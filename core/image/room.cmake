jemm_room(image SOURCES envelope.cpp DEPS jemm_base)
