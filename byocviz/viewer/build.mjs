// Builds dist/viewer.js, viewer.css, worker.js and graphviz.wasm.gz, and for notebooks notebook.js,
// frame.js and frame.css. The page holds the layout
// worker and Graphviz as the text of elements, so that one HTML file works from file:// without any
// request, and its scripts are small and run early.
import { build } from "esbuild";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const graphviz = join(here, "node_modules/@hpcc-js/wasm-graphviz/dist/index.js");
const common = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  // With one character beyond Latin-1 a browser keeps the whole script at two bytes a character.
  charset: "ascii",
  legalComments: "none",
  target: ["chrome110", "firefox115", "safari16.4"],
  write: false,
  logLevel: "warning",
};

/** The WebAssembly that the package unpacks from a string when it is loaded. */
async function wasmOf(file) {
  const { instantiate } = WebAssembly;
  let bytes;
  WebAssembly.instantiate = (source, imports) => {
    bytes = new Uint8Array(source);
    return instantiate(source, imports);
  };
  try {
    const { Graphviz } = await import(pathToFileURL(file).href);
    await Graphviz.load();
  } finally {
    WebAssembly.instantiate = instantiate;
  }
  if (!bytes) throw new Error("@hpcc-js/wasm-graphviz no longer calls WebAssembly.instantiate");
  return bytes;
}

// The package's own unpacking (base91 and zstd, in JavaScript) takes 100 ms at every opening; the
// browser's own gzip takes a tenth. So the unpacked bytes are handed to it instead.
const unpacking = /([\w$]+)\?\?=[\w$]+\([\w$]+\([\w$]+\)\)/g;
const worker = await build({
  ...common,
  entryPoints: ["src/layout/worker.ts"],
  format: "iife",
  plugins: [
    {
      name: "graphviz",
      setup(b) {
        b.onLoad({ filter: /wasm-graphviz[\\/]dist[\\/]index\.js$/ }, (args) => {
          const source = readFileSync(args.path, "utf8");
          if (source.match(unpacking)?.length !== 1) {
            throw new Error("@hpcc-js/wasm-graphviz unpacks its WebAssembly in another way: see build.mjs");
          }
          return { contents: source.replace(unpacking, "$1=globalThis.graphvizWasm"), loader: "js" };
        });
      },
    },
  ],
});

const page = await build({
  ...common,
  entryPoints: ["src/main.tsx"],
  outdir: "dist",
  format: "iife",
  jsx: "automatic",
  jsxImportSource: "preact",
});

// The widget of notebooks: the module that the front end loads, and the page in its frame.
const outer = await build({ ...common, entryPoints: ["src/notebook/outer.ts"], format: "esm" });
const inner = await build({
  ...common,
  entryPoints: ["src/notebook/inner.tsx"],
  outdir: "dist",
  format: "iife",
  jsx: "automatic",
  jsxImportSource: "preact",
});

mkdirSync(join(here, "dist"), { recursive: true });
const script = page.outputFiles.find((file) => file.path.endsWith(".js"));
const style = page.outputFiles.find((file) => file.path.endsWith(".css"));
// An inline script ends at the first "</script", and "<!--" changes how it is read.
const inline = (code) => code.replace(/<(\/script)/gi, "<\\$1").replace(/<!--/g, "<\\!--");
writeFileSync(join(here, "dist/viewer.js"), inline(script.text));
writeFileSync(join(here, "dist/worker.js"), inline(worker.outputFiles[0].text));
writeFileSync(join(here, "dist/viewer.css"), style.text);
writeFileSync(join(here, "dist/notebook.js"), outer.outputFiles[0].text);
const [code, looks] = [".js", ".css"].map((end) => inner.outputFiles.find((file) => file.path.endsWith(end)).text);
writeFileSync(join(here, "dist/frame.js"), inline(code));
writeFileSync(join(here, "dist/frame.css"), looks);
writeFileSync(join(here, "dist/graphviz.wasm.gz"), gzipSync(await wasmOf(graphviz), { level: 9 }));
