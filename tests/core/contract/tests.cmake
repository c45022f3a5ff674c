jemm_test(contract EXTRA
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/golden_test.cpp ${CMAKE_CURRENT_LIST_DIR}/answer_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/json_members_test.cpp
  DEPS jemm_contract jemm_image)
