jemm_room(checkpoint
  SOURCES adapter_config.cpp adapter_weights.cpp base_weights.cpp config.cpp dtype.cpp
    file_checkpoint.cpp json_object.cpp registry.cpp safetensors.cpp safetensors_header.cpp tensor.cpp
  DEPS jemm_base nlohmann_json::nlohmann_json)
