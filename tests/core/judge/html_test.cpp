// report.html as text: well-formed, without scripts, without references to anything outside it.
#include <doctest/doctest.h>

#include "core/judge/sample_report.h"
#include "core/judge/tools.h"
#include "judge/render.h"
#include "judge/svg.h"

#include <cmath>
#include <limits>

namespace {

using namespace jemm;
using namespace jemm::test;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++n;
  return n;
}

/// The part that must be well-formed XML too: the body, every element of which is closed.
std::string body_of(const std::string& html) {
  const std::size_t start = html.find("<body>");
  return html.substr(start, html.find("</html>") - start);
}

/// The values of these attributes, wherever they stand.
std::vector<std::string> attribute_values(const std::string& html,
                                          std::initializer_list<const char*> names) {
  std::vector<std::string> values;
  for (const char* name : names) {
    const std::string mark = std::string(" ") + name + "=\"";
    for (std::size_t at = html.find(mark); at != std::string::npos; at = html.find(mark, at + 1)) {
      const std::size_t begin = at + mark.size();
      values.push_back(html.substr(begin, html.find('"', begin) - begin));
    }
  }
  return values;
}

TEST_CASE("pages are well-formed and show no raw number that is none") {
  const TestDir dir;
  for (const Report& report :
       {sample_report(Verdict::kPass), sample_report(Verdict::kDrift), zero_report(),
        empty_report(), not_finite_report(), hostile_report(), redacted(hostile_report())}) {
    const std::string html = report_html(report);
    const std::string file = dir.write("body.xml", body_of(html));
    CHECK(run_shell("xmllint --noout '" + file + "' 2>&1").out == "");
    for (const std::string& value :
         attribute_values(html, {"x", "y", "cx", "cy", "width", "height", "x1", "x2", "y1", "y2",
                                 "r", "d", "points", "viewBox", "transform"})) {
      CHECK_FALSE(has(value, "nan"));
      CHECK_FALSE(has(value, "inf"));
    }
  }
}

TEST_CASE("pages refer to nothing outside and run nothing") {
  const std::string html = report_html(hostile_report());
  for (const char* part :
       {"<script", "<link", "<img", "<iframe", "src=", "href=", "url(", "@import", "javascript:"}) {
    CAPTURE(part);
    CHECK_FALSE(has(html, part));
  }
  CHECK(has(html, "default-src 'none'; style-src 'unsafe-inline'"));
}

TEST_CASE("the first screen says verdict, reason, and both distances") {
  const std::string html = report_html(sample_report(Verdict::kWithinNoise));
  const std::size_t first_section = html.find("<section>");
  const std::string head = html.substr(0, first_section);
  CHECK(has(head, "<h1 class=\"noise-text\">WITHIN-NOISE</h1>"));
  CHECK(has(head, "Drift 0.021 is beyond 0.01, but within twice the reference&#39;s own 0.023."));
  CHECK(has(head, "<dd>0.021<small>reference&#39;s own 0.023</small>"));
}

TEST_CASE("every plot is there, and has a title") {
  const std::string html = report_html(sample_report(Verdict::kFail));
  for (const char* title : {"Drift by stage and layer", "Drift against prompt length",
                            "Drift against the reference&#39;s margin", "Drift by type",
                            "Drift by candidates", "Drift by images"}) {
    CAPTURE(title);
    CHECK(has(html, std::string(title) + "</title>"));
  }
  CHECK(count(html, "class=\"spread\"") == 10);
  CHECK(count(html, "class=\"bar-reference\"") == 30);
  CHECK(count(html, "<svg") == count(html, "role=\"img\""));
  CHECK(has(html, "winner flips</title></path>"));
}

TEST_CASE("absent plots leave a sentence, not a hole") {
  const std::string html = report_html(empty_report());
  CHECK(has(html, "No answers were compared."));
  CHECK(has(html, "No stage is over its budget."));
  CHECK(count(html, "<svg") == 0);
}

TEST_CASE("axes hold whatever values there are") {
  for (const std::vector<double>& values : {std::vector<double>{},
                                            {0},
                                            {0, 0},
                                            {kNan},
                                            {kInfinity, 0},
                                            {1e-320},
                                            {1e308, 1e-308},
                                            {1e-17, 0.5},
                                            {3}}) {
    for (const Axis& axis : {log_axis("a", values), linear_axis("a", values)}) {
      CHECK(axis.low < axis.high);
      CHECK(axis.ticks.size() <= 24);
      for (const double value : values) {
        const double position = axis.position(value, 0.1);
        CHECK(position >= -0.1);
        CHECK(position <= 1.1);
      }
    }
  }
}

TEST_CASE("positions on axes") {
  Axis axis{.label = "", .log = true, .low = 1e-4, .high = 1, .ticks = {}};
  axis.zero_lane = true;
  CHECK(axis.position(1e-2, 0.1) == doctest::Approx(0.5));
  CHECK(axis.position(0, 0.1) == doctest::Approx(-0.1));
  CHECK(axis.position(kNan, 0.1) == doctest::Approx(1.1));
  axis.log = false;
  axis.low = 0;
  CHECK(axis.position(0.25, 0.1) == doctest::Approx(0.25));
  const Axis margins = log_axis("margin", {1e-17, 0, 0.5});
  CHECK(margins.zero_label == "<4e-07");
  CHECK(margins.position(1e-17, 0.1) == doctest::Approx(-0.1));
  CHECK(log_axis("margin", {0, 0.5}).zero_label == "0");
  const Axis tokens = log_axis("tokens", {100, 2000});
  REQUIRE(tokens.ticks.size() == 5);
  CHECK(tokens.ticks[0].label == "100");
  CHECK(tokens.ticks[4].label == "2000");
}

}  // namespace
