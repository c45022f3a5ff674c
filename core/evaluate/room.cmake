jemm_room(evaluate SOURCES encoder.cpp evaluator.cpp images.cpp
  DEPS jemm_contract jemm_tokens jemm_image jemm_checkpoint jemm_plan jemm_engine)
