jemm_room(base SOURCES base64.cpp blocks.cpp error.cpp files.cpp new_file.cpp sha256.cpp utf8.cpp DEPS fmt::fmt
  PRIVATE_DEPS OpenSSL::Crypto Threads::Threads)
