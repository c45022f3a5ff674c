// jemm inspect: what a checkpoint is, what it needs and what would be refused.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/labels.h"
#include "commands.h"
#include "exit_codes.h"
#include "inspect_report.h"
#include "output.h"

namespace jemm::cli {
namespace {

using Json = nlohmann::ordered_json;

struct InspectOptions {
  ModelOptions model;
  bool as_json = false;
};

std::string size_text(const Json& bytes) {
  const double n = bytes.get<double>();
  return n < 1e9 ? fmt::format("{:.2f} MB", n / 1e6) : fmt::format("{:.2f} GB", n / 1e9);
}

std::string architecture_text(const Json& a) {
  return fmt::format(
      "architecture  {}, {:.1f} M parameters without the rest of the head\n"
      "              {} layers ({} linear attention, {} full attention), width {}, MLP {}\n"
      "              {} heads of {} with {} for keys and values; {} key and {} value heads\n"
      "              vocabulary {}, head {}; vision: {} blocks of width {}, patches of {}\n",
      a["name"].get<std::string>(), a["parameters"].get<double>() / 1e6, a["layers"].dump(),
      a["linear_attention_layers"].dump(), a["full_attention_layers"].dump(),
      a["hidden_size"].dump(), a["intermediate_size"].dump(), a["heads"].dump(),
      a["head_dim"].dump(), a["kv_heads"].dump(), a["key_heads"].dump(), a["value_heads"].dump(),
      a["vocabulary"].dump(), a["tied_head"].get<bool>() ? "tied" : "of its own",
      a["vision_blocks"].dump(), a["vision_hidden_size"].dump(), a["patch_size"].dump());
}

std::string prompt_text(const Json& report) {
  const Json& tokenizer = report["tokenizer"];
  std::string labels;
  for (const auto& [label, id] : report["labels"].items()) {
    labels += fmt::format(" {}={}", label, id.dump());
  }
  return fmt::format("tokenizer     {}, pattern {}, {} tokens up to id {}\nlabels       {}\n",
                     tokenizer["class"].dump(), tokenizer["pattern"].get<std::string>(),
                     tokenizer["vocabulary"].dump(), tokenizer["max_id"].dump(), labels) +
         fmt::format("budgets       {} tokens of text, {} with images\n",
                     report["token_budgets"]["text"].dump(),
                     report["token_budgets"]["images"].dump());
}

std::string memory_text(const Json& memory) {
  std::string text =
      "memory        engine    weights      pairs        2048 rows    text budget  "
      "image budget\n";
  for (const auto& [engine, need] : memory.items()) {
    text += fmt::format("              {:9} {:12} {:12} {:12} {:12} {}{}\n", engine,
                        size_text(need["weights"]), size_text(need["pairs"]),
                        size_text(need["pass_of_2048_rows"]), size_text(need["text_budget"]),
                        size_text(need["image_budget"]),
                        engine.starts_with("gpu") ? "  (estimate)" : "");
  }
  return text;
}

std::string hashes_text(const Json& report) {
  const Json& hashes = report["hashes"];
  std::string text = "hashes        ";
  if (hashes["recorded"].get<bool>()) {
    text += fmt::format("recorded by {}; checked: {}\n", hashes["exporter"].get<std::string>(),
                        hashes["checked"].get<std::string>());
  } else {
    text += "not recorded: no export\n";
  }
  if (report.contains("fingerprint")) {
    text += "fingerprint   " + report["fingerprint"].get<std::string>() + "\n";
  }
  return text;
}

std::string report_text(const Json& report) {
  std::string text = fmt::format("model         {} ({})\n", report["model"].get<std::string>(),
                                 report.value("kind", "unreadable"));
  if (report.contains("architecture")) text += architecture_text(report["architecture"]);
  if (report.contains("weight_bytes")) {
    text += "weights      ";
    for (const auto& [type, bytes] : report["weight_bytes"].items()) {
      text += fmt::format(" {} {}", type, size_text(bytes));
    }
    text += '\n';
  }
  if (report.contains("lora")) {
    const Json& lora = report["lora"];
    text += fmt::format("LoRA          {}, pairs on {} of {} layers, rank {}, scale {}\n",
                        lora["mode"].get<std::string>(), lora["pairs"].dump(),
                        lora["layers_that_take_one"].dump(), lora["ranks"].dump(),
                        lora["scales"].dump());
  }
  if (report.contains("calibration")) {
    const Json& c = report["calibration"];
    text += fmt::format("calibration   temperature {}, with images {}, threshold {}\n",
                        c["temperature"].dump(), c["mm_temperature"].dump(), c["threshold"].dump());
  }
  if (report.contains("template")) {
    text += fmt::format("template      {} ({})\n", report["template"]["sha256"].get<std::string>(),
                        report["template"]["known"].get<bool>() ? "known" : "unknown");
  }
  if (report.contains("tokenizer")) text += prompt_text(report);
  if (report.contains("memory_bytes")) text += memory_text(report["memory_bytes"]);
  if (report.contains("hashes")) text += hashes_text(report);
  if (report["refusals"].empty()) return text + "refused       nothing\n";
  for (const Json& refusal : report["refusals"]) {
    text += "refused       " + refusal.get<std::string>() + "\n";
  }
  return text;
}

int run_inspect(const InspectOptions& options) {
  const Json report = inspect_model(options.model);
  const std::string text = options.as_json
                               ? report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"
                               : report_text(report);
  Output output = Output::standard_output();
  output.write(text);
  return report["refusals"].empty() ? kOk : kEngine;
}

}  // namespace

Command add_inspect(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("inspect", "Say what a checkpoint is and what would be refused of it");
  auto options = std::make_shared<InspectOptions>();
  command->footer(
      "Reads every byte as jemm decide does before it answers; --trust looks at headers and small\n"
      "files only.\n"
      "Examples:\n"
      "  jemm inspect exported\n"
      "  jemm inspect --trust --json BASE+ADAPTER\n"
      "Exit: 0 usable, 2 usage, 4 something would be refused");
  command->add_option("DIR", options->model.model,
                      "An export, BASE+ADAPTER or a base alone; default: the embedded toy");
  command->add_flag("--trust", options->model.trust, "Do not hash large files");
  add_tokenizer_options(*command, options->model);
  command->add_flag("--json", options->as_json, "JSON instead of text");
  return [options] { return run_inspect(*options); };
}

}  // namespace jemm::cli
