// Runs the plan of an export: reads every input once, makes the outputs, writes the manifest.
#include "checkpoint/export.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "base/blocks.h"
#include "base/error.h"
#include "base/new_file.h"
#include "base/sha256.h"
#include "checkpoint/export_files.h"
#include "checkpoint/export_plan.h"
#include "checkpoint/file_records.h"
#include "checkpoint/fingerprint.h"
#include "checkpoint/json_object.h"
#include "checkpoint/safetensors_writer.h"

namespace jemm {
namespace {

namespace fs = std::filesystem;

/// Files that are worked on at the same time: each holds up to two blocks.
std::size_t n_workers() {
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 4);
}

/// The directory of an export, which one process at a time may fill.
class OutDirectory {
 public:
  explicit OutDirectory(const fs::path& path) {
    std::error_code error;
    fs::create_directories(path, error);
    fd_ = error ? -1 : ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd_ < 0) {
      fail(ErrorKind::kIo, "cannot make the directory {}: {}", path.string(),
           error ? error.message() : std::strerror(errno));
    }
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(fd_);
      fail(ErrorKind::kUsage, "another export is writing {}", path.string());
    }
  }
  ~OutDirectory() { ::close(fd_); }
  OutDirectory(const OutDirectory&) = delete;
  OutDirectory& operator=(const OutDirectory&) = delete;

 private:
  int fd_ = -1;
};

FileRecord record_of(const std::string& name, const fs::path& path, std::string sha256) {
  const BlockFile file(path);
  return {name, file.size(), file.mtime_ns(), std::move(sha256)};
}

/// Throws for an output directory that is an input: files would take their own place.
void check_out_is_apart(const ExportJob& job) {
  for (const fs::path& input : {job.base, job.adapter}) {
    std::error_code absent;
    if (fs::equivalent(input, job.out, absent)) {
      fail(ErrorKind::kUsage, "{} is an input, it cannot be the output too", job.out.string());
    }
  }
}

/// One run: what is done so far is in `state_`, on disk too.
class Exporter {
 public:
  Exporter(const ExportJob& job, const ExportSource& source, const ExportPlan& plan)
      : job_(job), plan_(plan) {
    state_.exporter = job.exporter;
    state_.base = job.base.string();
    state_.adapter = job.adapter.string();
    state_.synthetic_seed = job.synthetic_seed;
    state_.lora = lora_facts(source.targets, job.lora);
    state_.prompt = job.prompt;
    state_.decision = source.decision;
    for (const PlannedInput& input : plan.inputs) {
      state_.inputs.push_back(record_of(input.name, input.path, ""));
    }
  }

  ExportSummary run() {
    if (is_finished()) return {.already_done = true};
    take_up_journal();
    check_space();
    for (const PlannedInput& input : plan_.inputs) {
      if (input.weights != nullptr) total_ += fs::file_size(input.path);
    }
    for (const PlannedOutput& output : plan_.outputs) total_ += output.bytes_to_write();
    save_journal();
    in_threads(plan_.inputs.size(), n_workers(), [this](std::size_t i) { read_input(i); });
    in_threads(plan_.outputs.size(), n_workers(),
               [this](std::size_t i) { make_output(plan_.outputs[i]); });
    check_inputs_again();
    finish();
    return summary_;
  }

 private:
  fs::path out(const std::string& name) const { return job_.out / name; }

  bool is_finished() {
    if (job_.start_over) {
      for (const char* name : {kManifestFile, kJournalFile}) require_replaceable(out(name));
      fs::remove(out(kManifestFile));
      fs::remove(out(kJournalFile));
      return false;
    }
    if (is_export(job_.out)) {
      const std::string why = difference(ExportFiles(job_.out).manifest(), state_);
      if (why.empty()) return true;
      fail(ErrorKind::kUsage, "{} holds an export already, and {}; --force replaces it",
           job_.out.string(), why);
    }
    if (!is_unfinished_export(job_.out) && !fs::is_empty(job_.out)) {
      fail(ErrorKind::kUsage, "{} is not empty; --force writes there all the same",
           job_.out.string());
    }
    return false;
  }

  void take_up_journal() {
    const fs::path path = out(kJournalFile);
    if (!fs::exists(path)) return;
    const ExportManifest earlier =
        parse_manifest(map_file(path).text(), path.string(), ManifestState::kPartial);
    const std::string why = difference(earlier, state_);
    if (!why.empty()) {
      fail(ErrorKind::kInput, "{} holds another unfinished export: {}; --force starts over",
           job_.out.string(), why);
    }
    state_.inputs = earlier.inputs;
    for (const FileRecord& record : earlier.outputs) {
      std::error_code error;
      if (!fs::is_regular_file(out(record.name), error)) continue;
      const FileRecord now = record_of(record.name, out(record.name), record.sha256);
      if (now.size == record.size && now.mtime_ns == record.mtime_ns) {
        state_.outputs.push_back(record);
      }
    }
  }

  void check_space() const {
    std::uint64_t needed = 0;
    for (const PlannedOutput& output : plan_.outputs) {
      if (find_record(state_.outputs, output.name) == nullptr) needed += output.bytes_to_write();
    }
    std::error_code error;
    const fs::space_info space = fs::space(job_.out, error);
    if (!error && space.available < needed) {
      fail(ErrorKind::kIo, "{}: {} bytes are to be written, but {} are free", job_.out.string(),
           needed, space.available);
    }
  }

  void read_input(std::size_t i) {
    const PlannedInput& input = plan_.inputs[i];
    if (!state_.inputs[i].sha256.empty()) {
      if (input.weights != nullptr) advance(state_.inputs[i].size);
      return;
    }
    std::string hash;
    if (input.weights != nullptr) {
      hash = scan_blocks(*input.weights, input.path, [this](std::uint64_t n) { advance(n); });
    } else {
      hash = sha256_of_file(input.path);
    }
    const std::lock_guard lock(mutex_);
    state_.inputs[i].sha256 = std::move(hash);
    if (input.weights != nullptr) save_journal();
  }

  void make_output(const PlannedOutput& output) {
    {
      const std::lock_guard lock(mutex_);
      if (find_record(state_.outputs, output.name) != nullptr) {
        ++summary_.n_resumed;
        advance_locked(output.bytes_to_write());
        return;
      }
    }
    const fs::path path = out(output.name);
    std::string hash;
    bool linked = false;
    if (output.input) {
      hash = state_.inputs[*output.input].sha256;
      linked = link_or_copy(plan_.inputs[*output.input].path, path);
    } else if (!output.tensors.empty()) {
      hash = write_safetensors(path, output.tensors, [this](std::uint64_t n) { advance(n); });
    } else {
      hash = sha256_hex(output.text);
      write_new_file(path, output.text);
    }
    const FileRecord record = record_of(output.name, path, hash);
    const std::lock_guard lock(mutex_);
    state_.outputs.push_back(record);
    if (output.input) {
      ++(linked ? summary_.n_linked : summary_.n_copied);
    } else {
      ++summary_.n_written;
    }
    if (!linked) summary_.bytes_written += record.size;
    if (!output.tensors.empty() || !linked) save_journal();
  }

  void check_inputs_again() const {
    for (std::size_t i = 0; i < plan_.inputs.size(); ++i) {
      const FileRecord now = record_of(plan_.inputs[i].name, plan_.inputs[i].path, "");
      const FileRecord& before = state_.inputs[i];
      if (now.size != before.size || now.mtime_ns != before.mtime_ns) {
        fail(ErrorKind::kInput, "{} changed while it was exported", plan_.inputs[i].path.string());
      }
    }
  }

  std::string fingerprint() const {
    std::vector<FileHash> files;
    for (std::size_t i = 0; i < plan_.inputs.size(); ++i) {
      if (plan_.inputs[i].decides) {
        files.push_back({plan_.inputs[i].name, state_.inputs[i].sha256});
      }
    }
    const std::string unmerged = job_.synthetic_seed
                                     ? synthetic_fingerprint_of(*job_.synthetic_seed, files)
                                     : fingerprint_of(files);
    return job_.lora == LoraMode::kMerged ? merged_fingerprint_of(unmerged) : unmerged;
  }

  void finish() {
    state_.fingerprint = fingerprint();
    std::sort(state_.outputs.begin(), state_.outputs.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    write_new_file(out(kManifestFile), manifest_text(state_));
    fs::remove(out(kJournalFile));
  }

  void save_journal() {
    write_new_file(out(kJournalFile), manifest_text(state_, ManifestState::kPartial));
  }

  void advance(std::uint64_t n) {
    const std::lock_guard lock(mutex_);
    advance_locked(n);
  }
  void advance_locked(std::uint64_t n) {
    done_ += n;
    if (job_.progress) job_.progress(done_, total_);
  }

  const ExportJob& job_;
  const ExportPlan& plan_;
  std::mutex mutex_;  // of what follows while threads run
  ExportManifest state_;
  ExportSummary summary_;
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
};

ExportSummary run_export(const ExportJob& job) {
  const ExportSource source(job);
  const ExportPlan plan = plan_export(source, job);
  const OutDirectory out(job.out);
  return Exporter(job, source, plan).run();
}

ExportSummary run_synthetic(const ExportJob& job) {
  const ExportSource source(job);
  const ExportPlan plan = plan_synthetic(source, job);
  const OutDirectory out(job.out);
  if (!fs::is_empty(job.out)) fail(ErrorKind::kUsage, "{} is not empty", job.out.string());
  for (const char* role : {"base", "adapter"}) fs::create_directory(job.out / role);
  std::uint64_t total = 0;
  for (const PlannedOutput& output : plan.outputs) total += output.bytes_to_write();
  ExportSummary summary;
  std::uint64_t done = 0;
  for (const PlannedOutput& output : plan.outputs) {  // the formula uses every processor
    const fs::path path = job.out / output.name;
    if (output.input) {
      ++(link_or_copy(plan.inputs[*output.input].path, path) ? summary.n_linked : summary.n_copied);
    } else if (!output.tensors.empty()) {
      write_safetensors(path, output.tensors, [&](std::uint64_t n) {
        done += n;
        if (job.progress) job.progress(done, total);
      });
      ++summary.n_written;
    } else {
      write_new_file(path, output.text);
      ++summary.n_written;
    }
  }
  summary.bytes_written = done;
  return summary;
}

ExportSummary with_own_errors(ExportSummary (*run)(const ExportJob&), const ExportJob& job) {
  try {
    check_out_is_apart(job);
    return run(job);
  } catch (const fs::filesystem_error& error) {
    fail(ErrorKind::kIo, "{}", error.what());
  }
}

}  // namespace

ExportSummary export_checkpoint(const ExportJob& job) {
  return with_own_errors(run_export, job);
}

ExportSummary write_synthetic(const ExportJob& job) {
  return with_own_errors(run_synthetic, job);
}

}  // namespace jemm
