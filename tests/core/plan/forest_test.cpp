#include "plan/forest.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "plan/runs.h"

namespace jemm {
namespace {

using Tokens = std::vector<std::int32_t>;

TEST_CASE("children go on where their parent ends") {
  Forest forest;
  const auto root = forest.add(-1, Tokens{10, 11, 12});
  const auto child = forest.add(root, Tokens{13, 14});
  const auto empty = forest.add(child, Tokens{});
  const auto leaf = forest.add(empty, Tokens{15});
  const auto other_root = forest.add(-1, Tokens{16});
  check_forest(forest);
  CHECK(forest.token_ids == Tokens{10, 11, 12, 13, 14, 15, 16});
  CHECK(forest.segments[static_cast<std::size_t>(child)].n_before == 3);
  CHECK(forest.segments[static_cast<std::size_t>(leaf)].n_before == 5);
  CHECK(forest.segments[static_cast<std::size_t>(leaf)].row_begin == 5);
  CHECK(forest.positions[4] == Position{4, 4, 4});
  CHECK(forest.positions[5] == Position{5, 5, 5});
  CHECK(forest.positions[6] == Position{0, 0, 0});

  CHECK(forest.read_last_row(other_root) == 0);
  CHECK(forest.read_last_row(empty) == 1);
  CHECK(forest.read_last_row(child) == 2);
  CHECK(forest.read_rows == std::vector<std::int64_t>{6, 4, 4});
  check_forest(forest);
}

TEST_CASE("text behind an image counts on from its largest axis") {
  Forest forest;
  const std::vector<Position> image{{7, 7, 7}, {7, 7, 8}, {7, 7, 9}};
  const auto root = forest.add(-1, Tokens{1, 1, 1}, image);
  forest.add(root, Tokens{2, 3});
  CHECK(forest.positions[3] == Position{10, 10, 10});
  CHECK(forest.positions[4] == Position{11, 11, 11});
}

TEST_CASE("bad additions are refused and leave the forest alone") {
  Forest forest;
  CHECK_THROWS_AS(forest.add(0, Tokens{1}), Error);
  CHECK_THROWS_AS(forest.add(-2, Tokens{1}), Error);
  CHECK_THROWS_AS(forest.add(-1, Tokens{1, 2}, std::vector<Position>{{0, 0, 0}}), Error);
  CHECK(forest.segments.empty());
  CHECK_THROWS_AS(forest.read_last_row(0), Error);
  const auto empty = forest.add(-1, Tokens{});
  CHECK_THROWS_AS(forest.read_last_row(empty), Error);
  const std::int32_t last = 2147483647;
  const auto far = forest.add(-1, Tokens{1}, std::vector<Position>{{last, 0, 0}});
  CHECK_THROWS_AS(forest.add(far, Tokens{1}), Error);
  check_forest(forest);
}

TEST_CASE("check_forest finds each inconsistency") {
  Forest good;
  const auto root = good.add(-1, Tokens{1, 2});
  good.add(root, Tokens{3});
  good.read_last_row(1);
  check_forest(good);
  const auto broken = [&](auto change) {
    Forest forest = good;
    change(forest);
    CHECK_THROWS_AS(check_forest(forest), Error);
  };
  broken([](Forest& f) { f.segments[1].parent = 1; });
  broken([](Forest& f) { f.segments[1].parent = -2; });
  broken([](Forest& f) { f.segments[1].row_begin = 1; });
  broken([](Forest& f) { f.segments[1].n_before = 1; });
  broken([](Forest& f) { f.segments[1].n_rows = -1; });
  broken([](Forest& f) { f.segments[1].n_rows = 9223372036854775807; });
  broken([](Forest& f) { f.segments[1].n_rows = 0; });
  broken([](Forest& f) { f.token_ids.push_back(0); });
  broken([](Forest& f) { f.positions.pop_back(); });
  broken([](Forest& f) { f.positions[1][2] = -1; });
  broken([](Forest& f) { f.read_rows[0] = 3; });
  broken([](Forest& f) { f.read_rows[0] = -1; });
}

TEST_CASE("runs leave empty segments out") {
  Forest forest;
  const auto empty_root = forest.add(-1, Tokens{});
  const auto a = forest.add(empty_root, Tokens{1, 2});
  const auto empty = forest.add(a, Tokens{});
  forest.add(empty, Tokens{3});
  const auto b = forest.add(a, Tokens{4, 5});
  forest.add(b, Tokens{6});
  const std::vector<Run> runs = runs_of(forest);
  REQUIRE(runs.size() == 4);
  CHECK(runs[0].parent == -1);
  CHECK(runs[0].last_child == 2);
  CHECK(runs[1].parent == 0);
  CHECK(runs[1].last_child == -1);
  CHECK(runs[2].parent == 0);
  CHECK(runs[3].parent == 2);
  CHECK(chain_rows(runs, 1) == std::vector<std::int64_t>{0, 1, 2});
  CHECK(chain_rows(runs, 3) == std::vector<std::int64_t>{0, 1, 3, 4, 5});
  CHECK(run_of_row(runs, 0) == 0);
  CHECK(run_of_row(runs, 2) == 1);
  CHECK(run_of_row(runs, 3) == 2);
  CHECK(run_of_row(runs, 5) == 3);
}

TEST_CASE("a state's slot is not given away while a run still starts from it") {
  Forest forest;
  const auto root = forest.add(-1, Tokens{1});
  const auto a = forest.add(root, Tokens{2});
  const auto b = forest.add(root, Tokens{3});
  forest.add(a, Tokens{4});
  forest.add(a, Tokens{5});
  forest.add(b, Tokens{6});
  forest.add(-1, Tokens{7});
  const std::vector<Run> runs = runs_of(forest);
  const StateSlots slots = assign_state_slots(runs);
  // Replays the slots with the run that last wrote to each.
  std::vector<std::int32_t> holder(static_cast<std::size_t>(slots.n_slots), -1);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].parent >= 0) {
      const auto from = slots.slot[static_cast<std::size_t>(runs[i].parent)];
      CHECK(holder[static_cast<std::size_t>(from)] == runs[i].parent);
    }
    holder[static_cast<std::size_t>(slots.slot[i])] = static_cast<std::int32_t>(i);
  }
  CHECK(slots.n_slots == 3);
}

TEST_CASE("image rows lie inside the forest, one behind the other") {
  Forest forest;
  forest.add(-1, Tokens{1, 2, 3, 4, 5, 6});
  forest.image_rows = {{0, 0, 1, 2}, {7, 30, 3, 3}};
  check_forest(forest);
  for (const ImageRows bad : {ImageRows{-1, 0, 3, 3},
                              {0, -1, 3, 3},
                              {0, 0, 2, 3},
                              {0, 0, 3, 4},
                              {0, 0, 3, -1},
                              {0, 0, 7, 0},
                              {0, 0, 3, INT64_MAX},
                              {0, 0, INT64_MAX, 3}}) {
    forest.image_rows[1] = bad;
    CHECK_THROWS_AS(check_forest(forest), Error);
  }
}

TEST_CASE("a deep chain needs one slot") {
  Forest forest;
  std::int32_t segment = -1;
  for (int i = 0; i < 20000; ++i) segment = forest.add(segment, Tokens{i});
  check_forest(forest);
  CHECK(assign_state_slots(runs_of(forest)).n_slots == 1);
  CHECK(chain_rows(runs_of(forest), 19999).size() == 20000);
}

}  // namespace
}  // namespace jemm
