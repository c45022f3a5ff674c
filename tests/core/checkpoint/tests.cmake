set(here ${CMAKE_CURRENT_LIST_DIR})
jemm_test(checkpoint
  SOURCES ${here}/adapter_test.cpp ${here}/base_weights_test.cpp ${here}/checkpoint_test.cpp
    ${here}/config_test.cpp ${here}/dtype_test.cpp ${here}/export_test.cpp ${here}/manifest_test.cpp
    ${here}/model_spec_test.cpp
    ${here}/pattern_test.cpp ${here}/registry_test.cpp ${here}/safetensors_test.cpp
    ${here}/synthetic_test.cpp
  DEPS jemm_checkpoint)
jemm_fuzzer(safetensors DEPS jemm_checkpoint)
jemm_fuzzer(config DEPS jemm_checkpoint)
jemm_fuzzer(checkpoint_files DEPS jemm_checkpoint)
