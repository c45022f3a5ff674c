#include "checkpoint/checkpoint.h"

#include "core/checkpoint/memory_source.h"

namespace jemm {
namespace {

void check(const char* text, const std::string& base, const std::string& adapter,
           std::optional<std::uint32_t> seed) {
  CAPTURE(text);
  const ModelSpec spec = parse_model_spec(text);
  CHECK(spec.base == base);
  CHECK(spec.adapter == adapter);
  CHECK(spec.synthetic_seed == seed);
}

TEST_CASE("model names are taken apart") {
  check("base", "base", "", std::nullopt);
  check("m/base+m/adapter", "m/base", "m/adapter", std::nullopt);
  check("c++++/base+x", "c++/base", "x", std::nullopt);
  check("a++b", "a+b", "", std::nullopt);
  check("a+b++c", "a", "b+c", std::nullopt);
  check("a+++b", "a+", "b", std::nullopt);
  check("synthetic:b+a", "b", "a", 1);
  check("synthetic:b+a,seed=0", "b", "a", 0);
  check("synthetic:b,seed=4294967295", "b", "", 4294967295U);
  check("synthetic:b,seed=x+a,seed=7", "b,seed=x", "a", 7);
  check("b,seed=7", "b,seed=7", "", std::nullopt);  // only the formula has a seed
}

TEST_CASE("malformed model names are refused") {
  const auto why = [](const char* text) {
    return refusal([&] { parse_model_spec(text); }, ErrorKind::kUsage);
  };
  CHECK(why("") == "model \"\" names no base");
  CHECK(why("+a") == "model \"+a\" names no base");
  CHECK(why("synthetic:") == "model \"synthetic:\" names no base");
  CHECK(why("a+") == "model \"a+\" names no adapter behind the +");
  CHECK(why("a+b+c") == "model \"a+b+c\": write BASE+ADAPTER, and a + inside a path as ++");
  for (const char* text : {"synthetic:b,seed=", "synthetic:b,seed=-1", "synthetic:b,seed=1x",
                           "synthetic:b,seed=4294967296", "synthetic:b,seed= 1"}) {
    CAPTURE(text);
    CHECK(holds(why(text), "is no number from 0 to 4294967295"));
  }
}

}  // namespace
}  // namespace jemm
