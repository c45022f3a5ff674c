# Compiled wherever the CUDA engine is; without a device every case says so and passes.
jemm_test(gpu_kernels LABELS gpu SOURCES ${CMAKE_CURRENT_LIST_DIR}/text_kernels_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/mixer_kernels_test.cpp ${CMAKE_CURRENT_LIST_DIR}/low_rank_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/residual_test.cpp ${CMAKE_CURRENT_LIST_DIR}/pass_graphs_test.cpp
  DEPS jemm_gpu)
jemm_test(gpu_engine LABELS gpu SOURCES ${CMAKE_CURRENT_LIST_DIR}/engine_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/device_facts_test.cpp
  DEPS jemm_gpu jemm_cpu jemm_checkpoint nlohmann_json::nlohmann_json)
jemm_test(gpu_lost_device LABELS gpu SOURCES ${CMAKE_CURRENT_LIST_DIR}/lost_device_test.cpp
  DEPS jemm_gpu jemm_cpu jemm_checkpoint)
jemm_test(gpu_vision EXTRA LABELS gpu
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/vision_kernels_test.cpp ${CMAKE_CURRENT_LIST_DIR}/vision_test.cpp
  DEPS jemm_gpu jemm_checkpoint jemm_contract jemm_image nlohmann_json::nlohmann_json)
jemm_test(gpu_host SOURCES ${CMAKE_CURRENT_LIST_DIR}/host_test.cpp DEPS jemm_gpu)
# What searches find stays in the build tree.
set_property(TEST gpu_engine gpu_lost_device APPEND PROPERTY ENVIRONMENT JEMM_CACHE_DIR=${CMAKE_BINARY_DIR}/cache)
