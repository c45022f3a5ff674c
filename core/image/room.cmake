find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
pkg_check_modules(WEBP REQUIRED IMPORTED_TARGET libwebp libwebpdemux)
jemm_room(image
  SOURCES envelope.cpp kind.cpp decode.cpp png_chunks.cpp png_text.cpp png.cpp png_rows.cpp jpeg_markers.cpp jpeg.cpp
    tiff_directory.cpp webp.cpp size.cpp resize.cpp resize_rows.cpp patches.cpp positions.cpp
  DEPS jemm_base
  PRIVATE_DEPS nlohmann_json::nlohmann_json ZLIB::ZLIB JPEG::JPEG PkgConfig::WEBP)
