jemm_room(tokens
  SOURCES added_tokens.cpp byte_alphabet.cpp byte_level_tokenizer.cpp check_utf8.cpp framing.cpp
          json_walker.cpp merges.cpp nfc.cpp sentencepiece_tokenizer.cpp splitter.cpp token_table.cpp
          tokenizer.cpp tokenizer_json.cpp tokenizer_rules.cpp unicode_classes.cpp
  DEPS jemm_base nlohmann_json::nlohmann_json
  PRIVATE_DEPS PkgConfig::SENTENCEPIECE)
