// report.html in headless Chromium, where there is one.
#include <doctest/doctest.h>

#include <iostream>

#include "core/judge/sample_report.h"
#include "core/judge/tools.h"
#include "judge/render.h"

namespace {

using namespace jemm;
using namespace jemm::test;

struct Page {
  std::string dom;
  std::string log;
};

/// Opens a page from disk; the document afterwards, and what the browser logged.
Page open_page(const TestDir& dir, const std::string& html) {
  const std::string file = dir.write("report.html", html);
  const std::string log = dir.path("log");
  const Ran ran = run_shell(
      "timeout 120 chromium --headless --no-sandbox --disable-gpu "
      "--enable-logging=stderr --user-data-dir='" +
      dir.path("profile") + "' --dump-dom 'file://" + file + "' 2>'" + log + "'");
  CHECK(ran.code == 0);
  return {.dom = ran.out, .log = read_file(log)};
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("Chromium opens the page from disk without a complaint") {
  if (!has_program("chromium")) {
    std::cout << "chromium is not installed\n";
    return;
  }
  const TestDir dir;
  const Page page = open_page(dir, report_html(sample_report(Verdict::kFail)));
  CHECK(has(page.dom, ">FAIL</h1>"));
  CHECK(has(page.dom, "A winner flips where the reference leads by 0.024"));
  CHECK(has(page.dom, "</svg>"));
  CHECK_FALSE(has(page.log, "CONSOLE"));

  const Page hostile = open_page(dir, report_html(hostile_report()));
  CHECK(has(hostile.dom, "&lt;script&gt;alert(1)"));
  CHECK_FALSE(has(hostile.dom, "<script"));
  CHECK_FALSE(has(hostile.log, "CONSOLE"));

  const Page bad = open_page(dir, "<body><script>console.error('heard')</script>");
  CHECK(has(bad.log, "CONSOLE"));  // so that its absence means something
}

}  // namespace
