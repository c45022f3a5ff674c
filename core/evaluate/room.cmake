jemm_room(evaluate SOURCES encoder.cpp evaluator.cpp images.cpp measure_profile.cpp
  pass_job.cpp pass_runner.cpp passes.cpp prompt_rows.cpp reuse_summary.cpp
  DEPS jemm_contract jemm_tokens jemm_image jemm_checkpoint jemm_plan jemm_engine
  PRIVATE_DEPS Threads::Threads)
