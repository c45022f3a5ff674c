// Cases to lines, tensors behind one header, then the manifest.
#include "judge/golden_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/error.h"
#include "base/utf8.h"
#include "checkpoint/safetensors_writer.h"
#include "contract/answer.h"

namespace jemm {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kCases = "cases.jsonl";
constexpr const char* kStages = "stages.safetensors";
constexpr const char* kValues = "stages.values";

/// As CPython's json writes and reads it.
std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return python_float(value);
}

std::string text_list(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(json_string(text));
  return fmt::format("[{}]", fmt::join(quoted, ","));
}

std::string field_json(const AnswerRecord& answer, const std::string& field) {
  if (field == "probabilities") {
    std::vector<std::string> members;
    for (const auto& [candidate, p] : answer.probabilities) {
      members.push_back(fmt::format("{}:{}", json_string(candidate), number(p)));
    }
    return fmt::format("{{{}}}", fmt::join(members, ","));
  }
  for (const auto& [name, value] : answer.numbers) {
    if (name == field) return number(value);
  }
  for (const auto& [name, value] : answer.texts) {
    if (name == field) return json_string(value);
  }
  return "null";
}

std::string response_json(const ResponseRecord& response) {
  std::vector<std::string> answers;
  for (const AnswerRecord& answer : response.answers) {
    std::vector<std::string> fields;
    for (const std::string& field : answer.fields) {
      fields.push_back(fmt::format("{}:{}", json_string(field), field_json(answer, field)));
    }
    answers.push_back(
        fmt::format("{}:{{{}}}", json_string(answer.question_id), fmt::join(fields, ",")));
  }
  return fmt::format(
      R"({{"model":{},"answers":{{{}}},"usage":{{"input_tokens":{},"output_tokens":{}}}}})",
      json_string(response.model), fmt::join(answers, ","), response.input_tokens.value_or(0),
      response.output_tokens.value_or(0));
}

/// Makes the directory and checks that the golden's files can be put there; changes none.
void make_directory(const fs::path& directory, bool force) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (!fs::is_directory(directory, error)) {
    fail(ErrorKind::kIo, "cannot make the directory {}", directory.string());
  }
  for (const char* name : {kManifest, kCases, kStages}) {
    if (!fs::exists(fs::symlink_status(directory / name, error))) continue;
    if (!force) {
      fail(ErrorKind::kUsage, "{} is there already; --force overwrites it",
           (directory / name).string());
    }
    require_replaceable(directory / name);
  }
}

void remove_old(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) fail(ErrorKind::kIo, "cannot remove {}: {}", path.string(), error.message());
}

}  // namespace

std::string record_json(const ImageRecord& image) {
  return fmt::format(
      R"({{"width":{},"height":{},"rgb_sha256":"{}","grid_thw":[{}],"pixel_values_sha256":"{}"}})",
      image.width, image.height, image.rgb_sha256, fmt::join(image.grid_thw, ","),
      image.pixel_values_sha256);
}

std::string record_json(const QuestionRecord& question) {
  std::string json = fmt::format(R"({{"id":{},"type":{},"candidates":{})", json_string(question.id),
                                 json_string(question.type), text_list(question.candidates));
  if (question.prompt) json += fmt::format(R"(,"prompt":{})", json_string(*question.prompt));
  if (question.token_ids) {
    json += fmt::format(R"(,"token_ids":[{}])", fmt::join(*question.token_ids, ","));
  }
  if (question.position_ids_sha256) {
    json += fmt::format(R"(,"position_ids_sha256":"{}")", *question.position_ids_sha256);
  }
  if (question.logits) {
    std::vector<std::string> logits;
    for (const double logit : *question.logits) logits.push_back(number(logit));
    json += fmt::format(R"(,"logits":[{}])", fmt::join(logits, ","));
  }
  return json + '}';
}

std::string case_line(const CaseRecord& record) {
  std::string line = fmt::format(R"({{"id":{},)", json_string(record.id));
  line += is_utf8(record.body) ? fmt::format(R"("raw":{})", json_string(record.body))
                               : fmt::format(R"("body_base64":"{}")", encode_base64(record.body));
  if (record.error) {
    return line + fmt::format(R"(,"status":"error","http":{},"error":{{"error":{},"detail":{}}}}})"
                              "\n",
                              record.error->http, json_string(record.error->type),
                              json_string(record.error->detail));
  }
  if (!record.images.empty()) {
    std::vector<std::string> images;
    for (const ImageRecord& image : record.images) images.push_back(record_json(image));
    line += fmt::format(R"(,"images":[{}])", fmt::join(images, ","));
  }
  std::vector<std::string> questions;
  for (const QuestionRecord& question : record.questions) {
    questions.push_back(record_json(question));
  }
  line += fmt::format(R"(,"questions":[{}])", fmt::join(questions, ","));
  if (record.response) line += fmt::format(R"(,"response":{})", response_json(*record.response));
  return line + R"(,"status":"ok"})" + "\n";
}

GoldenWriter::GoldenWriter(const fs::path& directory, bool force)
    : directory_((make_directory(directory, force), directory)), cases_(directory / kCases) {}

GoldenWriter::~GoldenWriter() {
  std::error_code ignored;
  if (values_) fs::remove(directory_ / kValues, ignored);
}

void GoldenWriter::add(const CaseRecord& record) {
  if (record.id.empty()) fail(ErrorKind::kInput, "a request has an empty id");
  if (!is_utf8(record.id)) {  // names of tensors are read by other programs too
    fail(ErrorKind::kInput, "the id {} holds a lone surrogate", json_string(record.id));
  }
  if (!ids_.insert(record.id).second) {
    fail(ErrorKind::kInput, "more than one request has the id {}", json_string(record.id));
  }
  cases_.write(case_line(record));
  if (record.error) return;
  ++n_ok_;
  for (const StageTensor& tensor : record.tensors) {
    if (!values_) values_.emplace(directory_ / kValues);
    values_->write(std::as_bytes(std::span(tensor.values)));
    tensors_.push_back(
        {fmt::format("{}/{}/{}", record.id, tensor.question, stage_name(tensor.stage)),
         tensor.values.size()});
  }
}

void GoldenWriter::write_stages(NewFile& stages) {
  std::vector<OutputTensor> described;
  for (const TensorPlace& tensor : tensors_) {
    OutputTensor& output = described.emplace_back();
    output.name = tensor.name;
    output.dtype = DType::kF32;
    output.shape = {static_cast<std::int64_t>(tensor.n_values)};
  }
  values_->finish();
  const fs::path values = directory_ / kValues;
  stages.write(safetensors_header(described));
  append_file(values, stages);
  values_.reset();
  remove_old(values);
}

void GoldenWriter::finish(const Source& source) {
  std::optional<NewFile> stages;
  if (values_) write_stages(stages.emplace(directory_ / kStages));
  nlohmann::ordered_json manifest = {{"format", "jemm-golden/1"},
                                     {"mode", "full"},
                                     {"dtype", source.dtype},
                                     {"device", source.device}};
  manifest["versions"] = nlohmann::ordered_json::object();
  for (const auto& [name, version] : source.versions) manifest["versions"][name] = version;
  manifest["checkpoint_sha256"] = source.checkpoint_sha256;
  if (source.synthetic_seed) manifest["synthetic_seed"] = *source.synthetic_seed;
  manifest["cases"] = ids_.size();
  manifest["ok"] = n_ok_;
  manifest["errors"] = ids_.size() - n_ok_;
  NewFile manifest_file(directory_ / kManifest);
  manifest_file.write(manifest.dump(1) + "\n");
  // All is written. Without a manifest, a mixture of old and new files is no golden.
  remove_old(directory_ / kManifest);
  if (stages) {
    stages->finish();
  } else {
    remove_old(directory_ / kStages);
  }
  cases_.finish();
  manifest_file.finish();
}

}  // namespace jemm
