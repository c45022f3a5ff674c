jemm_room(contract
  SOURCES answer.cpp candidates.cpp json_bytes.cpp json_duplicates.cpp json_members.cpp json_reader.cpp json_string.cpp
          json_value.cpp python_repr.cpp python_text.cpp request.cpp tool_line.cpp
  DEPS jemm_base)
