# oneDNN is built on OpenMP; products.cpp tells that runtime, which it shares, to use one thread.
find_library(JEMM_GOMP gomp HINTS ${CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES} NO_CACHE)
if(NOT JEMM_GOMP)
  set(JEMM_GOMP gomp)
endif()
jemm_room(cpu
  SOURCES attention.cpp conv.cpp cpu_engine.cpp delta_rule.cpp elementwise.cpp linear.cpp
    mixers.cpp norms.cpp products.cpp rotary.cpp thread_pool.cpp tiles.cpp vision.cpp
    vision_grid.cpp vision_weights.cpp weights.cpp
  DEPS jemm_engine jemm_plan jemm_checkpoint
  PRIVATE_DEPS DNNL::dnnl ${JEMM_GOMP} Threads::Threads)
target_compile_definitions(jemm_cpu PRIVATE JEMM_VERSION="${PROJECT_VERSION}")
