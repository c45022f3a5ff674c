jemm_room(checkpoint
  SOURCES adapter_config.cpp adapter_weights.cpp base_weights.cpp checkpoint.cpp config.cpp
    described_checkpoint.cpp dtype.cpp export.cpp export_files.cpp export_plan.cpp
    file_checkpoint.cpp file_records.cpp fingerprint.cpp input_hashes.cpp json_object.cpp
    manifest.cpp memory_need.cpp model_spec.cpp output_tensor.cpp pattern.cpp registry.cpp
    safetensors.cpp safetensors_header.cpp safetensors_writer.cpp synthetic.cpp
    synthetic_checkpoint.cpp tensor.cpp weight_scan.cpp
  DEPS jemm_base nlohmann_json::nlohmann_json
  PRIVATE_DEPS Threads::Threads)
