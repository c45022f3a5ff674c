jemm_room(judge
  SOURCES answer_lines.cpp bins.cpp case_reader.cpp compare.cpp compare_answers.cpp diff.cpp diff_reports.cpp
    diff_tally.cpp distance.cpp faults.cpp gates.cpp github.cpp golden.cpp golden_writer.cpp html_plots.cpp
    html_style.cpp indexed_lines.cpp judge.cpp junit.cpp redact.cpp render_text.cpp
    report_bisection.cpp report_facts.cpp report_html.cpp report_json.cpp report_markdown.cpp
    report_names.cpp report_terminal.cpp stage_id.cpp svg.cpp tables.cpp verdict.cpp
  DEPS jemm_base jemm_contract jemm_checkpoint
  PRIVATE_DEPS nlohmann_json::nlohmann_json)
