// Gates: what may differ, and by how much. Data, read from JSON and hashed before a run.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "judge/stage_id.h"

namespace jemm {

/// A limit as a number, as a multiple of the reference's own noise, or both: then the larger one
/// counts. Neither: the value is reported, not judged.
struct Budget {
  std::optional<double> at_most;
  std::optional<double> times_noise;
};

/// Where a value stands against its budget. The budget is max(at_most, times_noise * noise).
enum class Outcome {
  kNotGated,     ///< no budget applies
  kPass,         ///< within at_most
  kWithinNoise,  ///< beyond at_most, within the multiple of the noise
  kOver,
};

/// A measured value beside its budget.
struct Gauge {
  double value = 0;
  Budget limits;
  std::optional<double> noise;  ///< the same value between the two references

  std::optional<double> budget() const;
  Outcome outcome() const;
  std::optional<double> share() const;  ///< value / budget; nothing without one, or for 0 / 0
};

/// RMS ratios are RMS(x - reference) / RMS(reference) of a tensor; the largest one counts. The
/// drift of an answer is the largest |p - p_reference| over its candidates. A flip is an answer
/// whose winner differs from the reference's; its margin is the reference's lead.
struct Gates {
  std::string name;
  Budget stage_rms;                        ///< vision, layer.NN, final_norm, logits
  std::map<StageId, Budget> stage_rms_of;  ///< instead, for single stages
  Budget stage_max_abs;                    ///< likewise, largest |x - reference|
  Budget probability_median;               ///< of the answers' drifts
  Budget probability_max;                  ///< largest drift
  Budget far_answer;  ///< an answer is far when its drift is over this; noise: its case's largest
  Budget far_share;   ///< share of the answers that are far
  Budget expected_value_max;        ///< largest difference of expected_value
  Budget flip_margin;               ///< winners agree where the reference leads by as much
  std::optional<double> threshold;  ///< crossings are counted; else the checkpoint's

  const Budget& rms_budget(StageId stage) const;
};

std::span<const std::string_view> gate_preset_names();
/// Throws Error(kUsage), listing the presets, for another name.
Gates gate_preset(std::string_view name);

/// Canonical JSON, "jemm-gates/1": equal gates give equal text.
std::string gates_json(const Gates& gates);
/// Throws Error(kInput), naming `file` and the key, for anything that is not understood.
Gates parse_gates(std::string_view json, const std::string& file);

}  // namespace jemm
