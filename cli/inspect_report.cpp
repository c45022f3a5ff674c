#include "inspect_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/labels.h"
#include "checkpoint/adapter_config.h"
#include "checkpoint/export_files.h"
#include "checkpoint/memory_need.h"
#include "checkpoint/registry.h"
#include "tokens/framing.h"

namespace jemm::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

class Inspection {
 public:
  explicit Inspection(const ModelOptions& options) : options_(options) {}

  OrderedJson report() {
    report_["schema"] = "jemm-inspect/1";
    report_["model"] = options_.model;
    if (attempt([this] { open_files(); })) {
      report_["kind"] = kind();
      attempt([this] { add_architecture(); });
      attempt([this] { add_adapter(); });
      attempt([this] { add_template(); });
      attempt([this] { add_prompts(); });
      attempt([this] { check_weights(); });
      add_hashes();
    }
    report_["refusals"] = refusals_;
    return std::move(report_);
  }

 private:
  /// Whether `act` came to its end; a refusal is noted once.
  bool attempt(const std::function<void()>& act) {
    try {
      act();
      return true;
    } catch (const Error& error) {
      if (std::find(refusals_.begin(), refusals_.end(), error.what()) == refusals_.end()) {
        refusals_.emplace_back(error.what());
      }
      return false;
    }
  }

  void open_files() {
    model_ = options_.model.empty() ? open_embedded_model() : open_model_files(options_);
  }

  const ExportManifest* manifest() const {
    return model_.files.exported == nullptr ? nullptr : &model_.files.exported->manifest();
  }

  const char* kind() const {
    if (options_.model.empty()) return "demonstration";
    if (manifest() != nullptr) return "export";
    if (model_.spec.synthetic_seed) return "synthetic";
    return model_.files.adapter == nullptr ? "base" : "base+adapter";
  }

  void add_architecture() {
    const FileSource& base = *model_.files.base;
    config_ = parse_model_config(base.open("config.json").text(), base.path("config.json"));
    registry_.emplace(*config_);
    const TextConfig& text = config_->text;
    const VisionConfig& vision = config_->vision;
    const auto n_full =
        std::count(text.layer_types.begin(), text.layer_types.end(), LayerType::kFullAttention);
    report_["architecture"] = {{"name", "Qwen3_5ForConditionalGeneration"},
                               {"parameters", parameter_count(*registry_)},
                               {"vocabulary", text.vocab_size},
                               {"hidden_size", text.hidden_size},
                               {"intermediate_size", text.intermediate_size},
                               {"layers", text.n_layers()},
                               {"full_attention_layers", n_full},
                               {"linear_attention_layers", text.n_layers() - n_full},
                               {"heads", text.n_heads},
                               {"kv_heads", text.n_kv_heads},
                               {"head_dim", text.head_dim},
                               {"key_heads", text.n_key_heads},
                               {"value_heads", text.n_value_heads},
                               {"tied_head", config_->tied_head},
                               {"vision_blocks", vision.depth},
                               {"vision_hidden_size", vision.hidden_size},
                               {"patch_size", vision.patch_size}};
  }

  void add_adapter() {
    const FileSource* adapter = model_.files.adapter.get();
    if (adapter == nullptr || !registry_) return;
    LoraFacts facts;
    if (manifest() != nullptr) facts = manifest()->lora;
    if (facts.mode == LoraMode::kUnmerged) {
      targets_ = parse_adapter_config(adapter->open("adapter_config.json").text(),
                                      adapter->path("adapter_config.json"), *registry_);
      facts = lora_facts(targets_, LoraMode::kUnmerged);
    }
    std::size_t n_places = 0;
    for (const TensorInfo& info : registry_->tensors()) n_places += info.takes_lora;
    report_["lora"] = {{"mode", lora_mode_name(facts.mode)},
                       {"pairs", facts.n_pairs},
                       {"layers_that_take_one", n_places},
                       {"ranks", facts.ranks},
                       {"scales", facts.scales}};
    const DecisionConfig decision = parse_decision_config(
        adapter->open("decision_config.json").text(), adapter->path("decision_config.json"));
    report_["calibration"] = {{"temperature", decision.temperature},
                              {"mm_temperature", decision.mm_temperature},
                              {"threshold", decision.threshold}};
  }

  void add_template() {
    const std::string hash = check_chat_template(*model_.files.base, true);
    report_["template"] = {{"sha256", hash}, {"known", is_known_template(hash)}};
    if (!options_.accept_template) check_chat_template(*model_.files.base, manifest() != nullptr);
  }

  void add_prompts() {
    ModelOptions options = options_;
    options.accept_template = true;  // what is unknown of it was said
    encoder_.emplace(open_encoder(model_, options));
    const Tokenizer& tokenizer = encoder_->tokenizer();
    report_["tokenizer"] = {{"class", tokenizer.description().tokenizer_class},
                            {"pattern", tokenizer.description().pattern},
                            {"vocabulary", tokenizer.description().vocabulary},
                            {"max_id", tokenizer.max_id()}};
    OrderedJson labels;
    for (std::size_t i = 0; i < kLabels.size(); ++i) {
      labels[std::string(kLabels.substr(i, 1))] = encoder_->label_ids()[i];
    }
    report_["labels"] = labels;
    report_["token_budgets"] = {{"text", kTextTokenBudget}, {"images", kImageTokenBudget}};
  }

  void check_weights() {
    if (!encoder_ || !config_) return;
    const std::shared_ptr<const Checkpoint> weights = open_weights(model_, *encoder_, options_);
    std::map<std::string, std::uint64_t> bytes;
    std::uint64_t total = 0;
    if (!model_.spec.synthetic_seed) {
      const TensorRegistry kept(*config_,
                                manifest() == nullptr ? HeadForm::kWhole : HeadForm::kLabelRows);
      for (const TensorInfo& info : kept.tensors()) {
        const Tensor tensor = weights->tensor(info.name);
        bytes[std::string(dtype_name(tensor.dtype))] += tensor.data.bytes.size();
        total += tensor.data.bytes.size();
      }
      report_["weight_bytes"] = bytes;
    }
    add_memory(total);
    // Of a pair of directories it takes reading every byte, and looks at every value.
    if (!options_.trust || manifest() != nullptr) report_["fingerprint"] = weights->fingerprint();
  }

  void add_memory(std::uint64_t stored_bytes) {
    const std::uint64_t n = parameter_count(*registry_);
    const std::uint64_t n_pairs = pair_values(targets_);
    if (stored_bytes == 0) stored_bytes = 2 * n;
    const auto entry = [](const MemoryNeed& need, const char* note) {
      constexpr std::uint64_t kPassRows = 2048, kPatchesOfBudget = 4 * kImageTokenBudget;
      return OrderedJson{{"weights", need.weights},
                         {"pairs", need.pairs},
                         {"a_row", need.a_row},
                         {"a_patch", need.a_patch},
                         {"pass_of_2048_rows", need.total(kPassRows, 0)},
                         {"text_budget", need.total(kTextTokenBudget, 0)},
                         {"image_budget", need.total(kImageTokenBudget, kPatchesOfBudget)},
                         {"note", note}};
    };
    report_["memory_bytes"] = {
        {"cpu_fp32", entry(memory_need(*config_, stored_bytes, n_pairs, 4),
                           "weights are mapped from the files as stored")},
        {"gpu_bf16", entry(memory_need(*config_, 2 * n, n_pairs, 2), "an estimate")},
        {"gpu_fp32", entry(memory_need(*config_, 4 * n, n_pairs, 4), "an estimate")}};
  }

  void add_hashes() {
    OrderedJson hashes = {{"recorded", manifest() != nullptr}};
    if (const ExportManifest* m = manifest()) {
      hashes["exporter"] = m->exporter;
      hashes["checked"] = options_.trust ? "small files; large ones by size and time" : "all files";
      for (const FileRecord& input : m->inputs) hashes["inputs"][input.name] = input.sha256;
    }
    report_["hashes"] = hashes;
  }

  const ModelOptions& options_;
  OrderedJson report_;
  std::vector<std::string> refusals_;
  ModelFiles model_;
  std::optional<ModelConfig> config_;
  std::optional<TensorRegistry> registry_;
  std::vector<AdapterTarget> targets_;
  std::optional<Encoder> encoder_;
};

}  // namespace

nlohmann::ordered_json inspect_model(const ModelOptions& options) {
  return Inspection(options).report();
}

}  // namespace jemm::cli
