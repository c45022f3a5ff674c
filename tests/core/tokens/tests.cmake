jemm_test(tokens EXTRA
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/added_tokens_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/framing_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/golden_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/json_walker_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/merges_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/rules_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/sentencepiece_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/splitter_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/tokenizer_json_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/tokenizer_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/unicode_test.cpp
  DEPS jemm_tokens)
jemm_fuzzer(tokenizer DEPS jemm_tokens)
jemm_fuzzer(tokenizer_json DEPS jemm_tokens)
