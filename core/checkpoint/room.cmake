jemm_room(checkpoint
  SOURCES export.cpp export_plan.cpp output_tensor.cpp safetensors_writer.cpp adapter_config.cpp adapter_weights.cpp base_weights.cpp checkpoint.cpp config.cpp
    described_checkpoint.cpp dtype.cpp export_files.cpp file_checkpoint.cpp file_records.cpp fingerprint.cpp
    input_hashes.cpp json_object.cpp manifest.cpp memory_need.cpp model_spec.cpp pattern.cpp registry.cpp
    safetensors.cpp safetensors_header.cpp synthetic.cpp synthetic_checkpoint.cpp tensor.cpp weight_scan.cpp
  DEPS jemm_base nlohmann_json::nlohmann_json
  PRIVATE_DEPS Threads::Threads)
