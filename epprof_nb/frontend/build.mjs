// Bundle the viewer for the static page (viewer.js, started by loader.js) and the live widget
// (widget.js, an ES module), the flame graph of comparisons (comparison.js) and the strips of a job
// (job.js).
// The output is deterministic: a test builds again and compares.
import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "..", "views", "static");
await mkdir(out, { recursive: true });

const common = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  target: "es2022",
  charset: "ascii",
  legalComments: "none",
  logLevel: "warning",
};
await build({
  ...common,
  entryPoints: ["src/styles/viewer.css"],
  outfile: join(out, "viewer.css"),
});
await build({
  ...common,
  entryPoints: ["src/entry/static_page.ts"],
  format: "iife",
  outfile: join(out, "viewer.js"),
});
await build({
  ...common,
  entryPoints: ["src/entry/comparison_page.ts"],
  format: "iife",
  outfile: join(out, "comparison.js"),
});
await build({
  ...common,
  entryPoints: ["src/entry/job_page.ts"],
  format: "iife",
  outfile: join(out, "job.js"),
});
await build({
  ...common,
  entryPoints: ["src/entry/loader.ts"],
  format: "iife",
  outfile: join(out, "loader.js"),
});
// esbuild leaves the values of custom properties, and some spaces, as they are.
const styles = (await readFile(join(out, "viewer.css"), "utf8"))
  .replace(/(--[\w-]+): /g, "$1:")
  .replace(/ \/ |(?<=var\(--\w+), /g, (text) => text.trim())
  .replace(/#(\w)\1(\w)\2(\w)\3(?!\w)/g, "#$1$2$3");
await build({
  ...common,
  entryPoints: ["src/entry/widget.ts"],
  format: "esm",
  charset: "utf8", // it travels as JSON, which has its own escapes
  // The widget lives in a shadow root, which the notebook's style sheets do not reach.
  define: { VIEWER_CSS: JSON.stringify(styles) },
  outfile: join(out, "widget.js"),
});
