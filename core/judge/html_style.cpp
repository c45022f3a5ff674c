// Colours and type of report.html: text in a serif face, figures in a plain one.
#include "judge/html_style.h"

namespace jemm {

std::string_view html_style() {
  return R"css(
:root { color-scheme: light dark;
  --paper: #fcfbf8; --ink: #1d1c1a; --quiet: #68645b; --line: #dedad0; --faint: #efece4;
  --pass: #2a6b46; --noise: #26637f; --drift: #8a5600; --fail: #a3262b; --mark: #3d5a75;
  --pale: #a9b9c7; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #171716; --ink: #e7e4dc; --quiet: #a09b90; --line: #3a3834; --faint: #252422;
  --pass: #84c79f; --noise: #86bfd9; --drift: #e2b565; --fail: #f08e8a; --mark: #9dbcd8;
  --pale: #566978; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 "Iowan Old Style", "Palatino Linotype", Palatino, "Book Antiqua", Georgia, serif; }
main { max-width: 1104px; margin: 0 auto; padding: 40px 32px 64px; }
.over-line { color: var(--quiet); margin: 0; }
h1 { font-size: 64px; line-height: 1.1; font-weight: 500; letter-spacing: -0.01em;
  margin: 8px 0 12px; }
.reason { font-size: 22px; line-height: 1.4; margin: 0 0 32px; max-width: 46em;
  overflow-wrap: anywhere; }
h2 { font-size: 22px; font-weight: 600; margin: 56px 0 8px; padding-top: 14px;
  border-top: 1px solid var(--line); }
h3 { font-size: 16px; font-weight: 600; margin: 28px 0 6px; }
p { margin: 0 0 12px; max-width: 46em; overflow-wrap: anywhere; }
.figures { display: flex; flex-wrap: wrap; gap: 20px 48px; margin: 0 0 32px; padding: 0; }
.figures div { min-width: 130px; }
.figures dt, dl.sides dt { color: var(--quiet); }
.figures dd { margin: 0; font-size: 26px; line-height: 1.25; font-variant-numeric: tabular-nums; }
.figures dd small { display: block; font-size: 14px; color: var(--quiet); }
dl.sides { display: grid; grid-template-columns: max-content 1fr; gap: 4px 20px; margin: 0; }
dl.sides dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; max-width: 100%; margin: 4px 0 8px;
  font: 13px/1.45 ui-sans-serif, system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans",
  sans-serif;
  font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 500; color: var(--quiet); border-bottom: 1px solid var(--line);
  padding: 4px 26px 4px 0; white-space: nowrap; }
td { padding: 3px 26px 3px 0; border-bottom: 1px solid var(--faint); vertical-align: top;
  overflow-wrap: anywhere; }
td.keep, td.right { white-space: nowrap; overflow-wrap: normal; }
td.wide { min-width: 260px; }
th.right, td.right { text-align: right; }
tr.sub td:first-child { padding-left: 18px; color: var(--quiet); }
.note { color: var(--quiet); font-size: 14px; }
.quiet { color: var(--quiet); } .pass { color: var(--pass); } .noise-text { color: var(--noise); }
.drift { color: var(--drift); } .fail { color: var(--fail); }
td.drift, td.fail, td.noise-text { font-weight: 600; }
figure { margin: 20px 0 0; overflow-x: auto; }
figcaption { font-weight: 600; margin: 0 0 4px; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(420px, 1fr));
  gap: 12px 20px; }
.answer { break-inside: avoid; margin: 20px 0 0; }
.answer p { margin: 0 0 2px; font-size: 14px; }
svg { display: block;
  font-family: ui-sans-serif, system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
svg.plot, svg.spread { width: 100%; height: auto; }
svg.plot { min-width: 440px; } svg.plot[viewBox^="0 0 1040"] { min-width: 780px; }
svg.spread { max-width: 480px; }
svg.share { display: inline-block; width: 76px; height: 10px; margin-left: 8px;
  vertical-align: -1px; }
svg text { fill: var(--ink); }
.tick, .key { font-size: 11px; } svg .tick, svg .axis-label { fill: var(--quiet); }
.axis-label { font-size: 11.5px; }
.end { text-anchor: end; } .middle { text-anchor: middle; }
.grid { stroke: var(--faint); } .axis { stroke: var(--quiet); }
.stem { stroke: var(--pale); }
.budget { stroke: var(--ink); stroke-width: 1.5; }
.noise { stroke: var(--noise); stroke-width: 1.5; stroke-dasharray: 3 2; }
.dot { fill: var(--mark); } .ring { fill: none; stroke: var(--noise); }
.cross { fill: none; stroke: var(--fail); stroke-width: 2; } .dash { stroke: var(--mark);
  stroke-width: 1.5; }
.bar-mean, .bar-reference { fill: var(--pale); stroke: var(--pale); }
.bar-max, .bar-observed { fill: var(--mark); stroke: var(--mark); }
.thick { stroke-width: 8; }
.bar-pass { fill: var(--pass); } .bar-noise-text { fill: var(--noise);
  } .bar-drift { fill: var(--drift); }
.bar-fail { fill: var(--fail); } .bar-quiet { fill: var(--quiet); }
@media (max-width: 640px) { main { padding: 24px 16px; } h1 { font-size: 44px;
  } .reason { font-size: 18px; }
  .pair { grid-template-columns: 1fr; } }
@media print { :root { color-scheme: light; --paper: #fff; --ink: #000; --quiet: #555; --line: #bbb;
  --faint: #e5e5e5; --pass: #2a6b46; --noise: #26637f; --drift: #8a5600; --fail: #a3262b;
  --mark: #3d5a75;
  --pale: #a9b9c7; }
  main { max-width: none; padding: 0; } svg.plot[viewBox] { min-width: 0;
  } figure, tr { break-inside: avoid; } h2, h3 { break-after: avoid; }
  .scroll, figure { overflow: visible; } * { print-color-adjust: exact; } }
)css";
}

}  // namespace jemm
