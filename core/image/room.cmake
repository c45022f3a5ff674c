find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
pkg_check_modules(WEBP REQUIRED IMPORTED_TARGET libwebp libwebpdemux)
jemm_room(image
  SOURCES envelope.cpp kind.cpp decode.cpp png_chunks.cpp png_text.cpp png.cpp png_rows.cpp jpeg_markers.cpp jpeg.cpp
    tiff_directory.cpp webp.cpp size.cpp resize.cpp resize_rows.cpp patches.cpp positions.cpp
  DEPS jemm_base
  PRIVATE_DEPS nlohmann_json::nlohmann_json ZLIB::ZLIB JPEG::JPEG PkgConfig::WEBP)
# Twice zlib's speed on sound PNG files, with the same pixels; done without where it is missing.
pkg_check_modules(LIBDEFLATE IMPORTED_TARGET libdeflate)
if(LIBDEFLATE_FOUND)
  target_compile_definitions(jemm_image PRIVATE JEMM_LIBDEFLATE)
  target_link_libraries(jemm_image PRIVATE PkgConfig::LIBDEFLATE)
endif()
