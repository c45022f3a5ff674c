jemm_room(plan SOURCES cost_profile.cpp forest.cpp prefix_tree.cpp reuse_plan.cpp runs.cpp
  DEPS jemm_base)
