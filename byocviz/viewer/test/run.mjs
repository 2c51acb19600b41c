// Bundles each test file for Node.js and runs them all with its own test runner.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = mkdtempSync(join(tmpdir(), "byocviz-viewer-"));
try {
  await build({
    entryPoints: readdirSync(here).filter((f) => f.endsWith(".test.ts")).map((f) => join(here, f)),
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node18",
    outdir: out,
    outExtension: { ".js": ".mjs" },
    jsx: "automatic",
    jsxImportSource: "preact",
    sourcemap: "inline",
    logLevel: "warning",
  });
  const files = readdirSync(out).filter((f) => f.endsWith(".test.mjs")).map((f) => join(out, f));
  const done = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...files], { stdio: "inherit" });
  process.exitCode = done.status ?? 1;
} finally {
  rmSync(out, { recursive: true, force: true });
}
