#include "evaluate/pass_job.h"

#include <algorithm>

#include "base/error.h"
#include "plan/reuse_plan.h"

namespace jemm {
namespace {

std::size_t n_image_rows(const PassQuestion& question) {
  std::size_t n = 0;
  for (const EncodedImagePtr& image : question.rows.images) n += image->n_tokens();
  return n;
}

/// Has the engine make rows of the images that have none.
void look_at_images(Engine& engine, std::span<PassQuestion> questions, PassJob& job) {
  std::vector<EncodedImagePtr> images;  // each once
  std::vector<ImagePatches> patches;
  TimeShares shares;
  for (PassQuestion& question : questions) {
    shares.emplace_back(&question.times, n_image_rows(question));
    for (const EncodedImagePtr& image : question.rows.images) {
      if (image->rows != nullptr) continue;
      if (std::find(images.begin(), images.end(), image) != images.end()) continue;
      images.push_back(image);
      patches.push_back({image->patches.grid_thw, image->patches.values});
    }
  }
  if (images.empty()) return;
  StageTimes times;
  {
    const StageTimer total(times.total_ms);
    const std::vector<VisionRowsPtr> rows = engine.vision(patches, times);
    for (std::size_t i = 0; i < images.size(); ++i) images[i]->rows = rows[i];
  }
  job.looked_at.insert(job.looked_at.end(), images.begin(), images.end());
  share_time(times, shares);
}

std::vector<LabelLogits> forward(Engine& engine, const PackedPass& packed, StageTimes& times) {
  std::vector<VisionRowsPtr> rows;
  for (const EncodedImagePtr& image : packed.images) rows.push_back(image->rows);
  return engine.forward(packed.forest, rows, times);
}

PackedPass pack_alone(const PromptRows& rows) {
  return pack_pass(whole_pass(0, static_cast<std::int64_t>(rows.token_ids.size())), {&rows, 1});
}

void compute(Engine& engine, const PackedPass& packed, std::span<PassQuestion> questions,
             PassJob& job) {
  look_at_images(engine, questions, job);
  StageTimes times;
  std::vector<LabelLogits> logits;
  {
    const StageTimer total(times.total_ms);
    logits = forward(engine, packed, times);
  }
  TimeShares shares;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    PassQuestion& question = questions[i];
    question.logits = logits[i];
    if (question.is_audited) {
      StageTimes nobodys;
      question.alone = forward(engine, pack_alone(question.rows), nobodys).front();
    }
    shares.emplace_back(&question.times, static_cast<std::size_t>(question.n_computed));
  }
  share_time(times, shares);
}

/// The pass was too large for the engine; a question that is too large alone fails alone.
void compute_apart(Engine& engine, PassJob& job) {
  for (PassQuestion& question : job.questions) {
    question.n_computed = static_cast<std::int64_t>(question.rows.token_ids.size());
    try {
      compute(engine, pack_alone(question.rows), {&question, 1}, job);
    } catch (const OutOfMemory& error) {
      question.too_large = error.what();
    }
  }
}

}  // namespace

void run_pass(Engine& engine, PassJob& job) noexcept {
  try {
    try {
      compute(engine, job.packed, job.questions, job);
      return;
    } catch (const OutOfMemory& error) {
      if (job.questions.size() == 1) {
        job.questions.front().too_large = error.what();
        return;
      }
    }
    compute_apart(engine, job);
  } catch (...) {
    job.error = std::current_exception();
  }
}

void share_time(const StageTimes& times, const TimeShares& shares) {
  std::size_t n_all = 0;
  for (const auto& [own, n] : shares) n_all += n;
  for (const auto& [own, n] : shares) {
    own->add(times, static_cast<double>(n) / static_cast<double>(n_all));
  }
}

}  // namespace jemm
