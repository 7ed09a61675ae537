import { copyFile, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import { build, type BuildOptions, type Plugin } from "esbuild";
import { collectExamples } from "./module-examples.ts";
import { warmUp } from "./warm-up.ts";

/**
 * Bundles kcore into `dist/`. The command line consists of `*.program` files, scripts for node:vm, with V8's code cache for them; each
 * command initializes only the parts that it needs. They are no ES modules, because after a run V8 can make a code cache only of a script.
 * `npm run bench:view` measures the start. The new bundle is made in a folder aside and renamed at the end, so that a running kcore never
 * reads half of it.
 */
const root = join(import.meta.dirname, "..");
const aside = join(root, `dist.${process.pid}`);
const target = join(root, "dist");

const shared = {
  absWorkingDir: root,
  bundle: true,
  format: "esm",
  platform: "node",
  sourcemap: false,
  legalComments: "none",
  minifySyntax: true,
  minifyWhitespace: true,
  external: ["cpu-features"],
  loader: { ".node": "empty" },
  define: { "process.env.NODE_ENV": '"production"' },
  logLevel: "warning",
} as const satisfies BuildOptions;

/** The files beside a source that its `new URL("./runner.sh", import.meta.url)` names, by name; the build copies them into `dist/`. */
const assets = new Map<string, string>();
const collectAssets: Plugin = {
  name: "files read at run time",
  setup(build) {
    build.onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => {
      const contents = await readFile(path, "utf8");
      for (const [, name = ""] of contents.matchAll(/new URL\(\s*"\.\/([\w.-]+)",\s*import\.meta\.url/g)) {
        const source = join(path, "..", name);
        const earlier = assets.get(name);
        if (earlier !== undefined && earlier !== source)
          throw new Error(`two files named ${name} are read at run time`);
        assets.set(name, source);
      }
      return { contents, loader: "ts" };
    });
  },
};

/** Leaves out React's developer tools, to which Ink connects when the environment variable DEV is set. */
const leaveDevtoolsOut: Plugin = {
  name: "no developer tools",
  setup(build) {
    build.onLoad({ filter: /\/ink\/build\/devtools\.js$/ }, () => ({ contents: "", loader: "js" }));
  },
};

/** The package yaml reads the environment at each token to decide whether to log the token: a tenth of the time of a large roster. */
const tokensAreNotLogged: Plugin = {
  name: "no log of tokens",
  setup(build) {
    build.onLoad({ filter: /\/yaml\/dist\/parse\/parser\.js$/ }, async ({ path }) => {
      const contents = await readFile(path, "utf8");
      const asked = "node_process.env.LOG_TOKENS";
      if (!contents.includes(asked)) throw new Error(`${path} does not ask for LOG_TOKENS any more`);
      return { contents: contents.replaceAll(asked, "false"), loader: "js" };
    });
  },
};

/**
 * Ink measures every character of every frame, and string-width takes half of the time of a frame. So src/base/text.ts stands in for
 * string-width. The real package, whose regular expressions take 50 ms to compile, is loaded when the first text needs it.
 */
const widthsAreFast: Plugin = {
  name: "our own string width",
  setup(build) {
    const own = join(root, "src/base/text.ts");
    build.onResolve({ filter: /^string-width$/ }, ({ importer, kind }) => {
      if (kind === "require-call") return undefined;
      return importer === own ? { path: "string-width", namespace: "when-needed" } : { path: own };
    });
    build.onLoad({ filter: /.*/, namespace: "when-needed" }, ({ path }) => ({
      contents: `export default (...given) => require(${JSON.stringify(path)}).default(...given);`,
      resolveDir: root,
    }));
  },
};

/** The text of a package's file with one piece replaced. Throws if the file lacks the piece: then the package has a version that this script does not know. */
async function changed(path: string, from: string, to: string): Promise<string> {
  return replaced(path, await readFile(path, "utf8"), from, to);
}

function replaced(path: string, text: string, from: string, to: string): string {
  if (!text.includes(from)) throw new Error(`${path} has changed: there is no “${from}” in it`);
  return text.replace(from, to);
}

/**
 * Ink takes every line of every frame apart, to keep control characters from the terminal and to fill its grid. kcore's views write whole
 * rows, so Ink writes a row of letters and colours alone as it is.
 */
const rowsAreWhole: Plugin = {
  name: "whole rows",
  setup(build) {
    const plain = join(root, "src/base/text.ts");
    build.onLoad({ filter: /\/ink\/build\/sanitize-ansi\.js$/ }, async ({ path }) => ({
      contents: await changed(
        path,
        "const sanitizeAnsi = (text) => {",
        `import { isPlain } from ${JSON.stringify(plain)};\nconst sanitizeAnsi = (text) => {\n  if (isPlain(text)) return text;`,
      ),
      loader: "js",
    }));
    // In a row of one-column characters the changed part is found without looking at each character.
    build.onLoad({ filter: /\/ink\/build\/line-update\.js$/ }, async ({ path }) => ({
      contents: await changed(
        path,
        "const printableAscii = /^[ -~]*$/u;",
        `import { isPlain } from ${JSON.stringify(plain)};\nconst printableAscii = { test: isPlain };`,
      ),
      loader: "js",
    }));
    build.onLoad({ filter: /\/ink\/build\/output\.js$/ }, async ({ path }) => {
      const own = `import { wholeRows } from ${JSON.stringify(join(root, "src/tui/ink/whole-rows.ts"))};`;
      const first = `get() {
        const rows = wholeRows(this.operations, this.height, (line) => styledCharsToString(this.caches.getStyledChars(line)));
        if (rows) return { output: rows.join("\\n"), height: rows.length };`;
      return { contents: `${own}\n${await changed(path, "get() {", first)}`, loader: "js" };
    });
  },
};

/**
 * Leaves out large unused parts of the start: Node's fetch for Yoga's own bytes, zod's fifty languages, and the parts of
 * ssh2 that load Node's https and zlib. kcore never offers compression (ssh-algorithms.ts).
 */
const startsFast: Plugin = {
  name: "start fast",
  setup(build) {
    build.onLoad({ filter: /\/yoga-wasm-base64-esm\.js$/ }, async ({ path }) => ({
      contents: await changed(path, '"function"!=typeof fetch', "!0"),
      loader: "js",
    }));
    build.onLoad({ filter: /\/ssh2\/lib\/http-agents\.js$/ }, () => ({
      contents: "module.exports = {};",
      loader: "js",
    }));
    build.onLoad({ filter: /\/ssh2\/lib\/protocol\/zlib\.js$/ }, async ({ path }) => {
      const text = await changed(path, "} = require('zlib');", "} = { constants: {} };");
      return { contents: replaced(path, text, "createInflate()._handle.constructor", "undefined"), loader: "js" };
    });
    build.onLoad({ filter: /\/zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: 'export { default as en } from "./en.js";',
      loader: "js",
    }));
  },
};

/**
 * Leaves out all of Kubernetes' library but reading a kubeconfig and authenticating a request. Unused are its classes
 * for each kind of each version of the API, and undici, their client (ADR 0313).
 */
const accessAlone: Plugin = {
  name: "kubeconfig alone",
  setup(build) {
    const file = /\/@kubernetes\/client-node\/dist\/config\.js$/;
    build.onLoad({ filter: file }, async ({ path }) => {
      const classes = "import { createConfiguration, ServerConfiguration, } from './gen/index.js';";
      const text = await changed(path, classes, "const [createConfiguration, ServerConfiguration] = [];");
      const undici = "import { Agent as UndiciAgent, ProxyAgent as UndiciProxyAgent, } from 'undici';";
      return { contents: replaced(path, text, undici, "const [UndiciAgent, UndiciProxyAgent] = [];"), loader: "js" };
    });
  },
};

/**
 * For AES-GCM ssh2 makes a cipher of Node for each packet. Node finds out by two exceptions that a key of bytes is no
 * KeyObject. So the key becomes a KeyObject once, and random padding is fetched for many packets at a time.
 */
const packetsAreLight: Plugin = {
  name: "light packets",
  setup(build) {
    build.onLoad({ filter: /\/ssh2\/lib\/protocol\/crypto\.js$/ }, async ({ path }) => {
      const text = await changed(
        path,
        "createHmac, randomFillSync, timingSafeEqual",
        "createHmac, randomFillSync: fill, timingSafeEqual, createSecretKey",
      );
      const contents = replaced(
        path,
        replaced(path, text, "this._encKey = enc.cipherKey;", "this._encKey = createSecretKey(enc.cipherKey);"),
        "this._decipherKey = dec.decipherKey;",
        "this._decipherKey = createSecretKey(dec.decipherKey);",
      );
      const pooled = `const randomPool = Buffer.allocUnsafeSlow(4096);
let randomUsed = randomPool.length;
function randomFillSync(packet, at, length) {
  if (!(length <= 255)) return fill(packet, at, length);
  if (randomUsed + length > randomPool.length) {
    fill(randomPool);
    randomUsed = 0;
  }
  randomPool.copy(packet, at, randomUsed, (randomUsed += length));
}`;
      return { contents: `${contents}\n${pooled}\n`, loader: "js" };
    });
  },
};

/** Replaces imports of Node's own modules: a script cannot import, and an import makes Node load all exports of the module. */
const builtinsAreAsked: Plugin = {
  name: "Node's own modules",
  setup(build) {
    build.onResolve({ filter: /./ }, ({ path }) => (isBuiltin(path) ? { path, namespace: "builtin" } : undefined));
    build.onLoad({ filter: /./, namespace: "builtin" }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)});`,
    }));
  },
};

/** Optional libraries, of which the package brings none: where they are installed, they are loaded when a command needs them. */
const optional = Object.keys(
  (JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { peerDependencies: object }).peerDependencies,
);

/** Replaces imports of optional libraries: a script cannot import. */
const optionalOnesAreAsked: Plugin = {
  name: "optional libraries",
  setup(build) {
    build.onResolve({ filter: /./ }, ({ path }) =>
      optional.includes(path) ? { path, namespace: "optional" } : undefined,
    );
    build.onLoad({ filter: /./, namespace: "optional" }, ({ path }) => ({
      contents: `module.exports = kcore.require(${JSON.stringify(path)});`,
    }));
  },
};

/** Replaces a dynamic import of one of `modules` by `contents`, which runs the program that holds the module. */
function comeAsProgram(name: string, modules: RegExp, contents: string): Plugin {
  const namespace = `program-${name}`;
  return {
    name: namespace,
    setup(build) {
      build.onResolve({ filter: modules }, ({ kind }) =>
        kind === "dynamic-import" ? { path: name, namespace } : undefined,
      );
      build.onLoad({ filter: /./, namespace }, () => ({ contents, resolveDir: root }));
    },
  };
}

const patches = [
  collectAssets,
  leaveDevtoolsOut,
  widthsAreFast,
  rowsAreWhole,
  startsFast,
  packetsAreLight,
  accessAlone,
  tokensAreNotLogged,
];

const agePath = "./src/engine/encrypted-values/age.ts";
/** The exports of age.ts, a program of its own: commands that neither seal nor open values do not read it. */
const ageExports = Array.from(
  (await readFile(join(root, agePath), "utf8")).matchAll(/^export (?:async )?function (\w+)/gm),
  ([, name = ""]) => name,
).join(", ");

/**
 * Builds one program, a script of which V8 can keep all compiled code (src/cli/process/run-program.ts). `contents`, its source, calls
 * `kcore.give` with the program's exports. The views of the whole terminal, with Ink, are a program of their own.
 */
async function buildProgram(name: string, contents: string): Promise<void> {
  const file = join(aside, `${name}.program`);
  const age = `export const { ${ageExports} } = await kcore.run("age");`;
  const kubernetes = `export const { openAccess } = await kcore.run("kubernetes");`;
  const views = `export const { openLiveView, openFleetScreen } = await kcore.run("views");`;
  await build({
    ...shared,
    outfile: file,
    stdin: { contents, resolveDir: root },
    target: "node22",
    define: { ...shared.define, "import.meta.url": "kcore.url", "import.meta.resolve": "undefined" },
    banner: {
      js: `(async (kcore) => {
const { require } = kcore;
const __filename = process.getBuiltinModule("url").fileURLToPath(kcore.url);
const __dirname = process.getBuiltinModule("path").dirname(__filename);`,
    },
    footer: { js: "})" },
    plugins: [
      builtinsAreAsked,
      optionalOnesAreAsked,
      comeAsProgram("views", /\/(live-view|open-fleet-screen)\.ts$/, views),
      comeAsProgram("age", /\/age\.ts$/, age),
      comeAsProgram("kubernetes", /\/kubeconfig-access\.ts$/, kubernetes),
      ...patches,
    ],
  });
  const beyond = /.{0,40}[\u0080-\uffff].{0,40}/u.exec(await readFile(file, "utf8"))?.[0];
  if (beyond !== undefined)
    process.stderr.write(`${name} takes twice the memory: there is more than ASCII in it, beside strings: ${beyond}\n`);
}

/**
 * Builds main.js, which starts the command line, and run-main.js, the process of a run. `warmsUp`: both are for the warm-up, in which each
 * process writes V8's code at its end.
 */
async function buildStarters({ warmsUp }: { readonly warmsUp: boolean }): Promise<void> {
  const load = `import { runProgram } from "./src/cli/process/run-program.ts";`;
  // A command that drives its run itself executes other code than all other commands, so its code is kept apart.
  const start = `${load}
import { looksLikeRun } from "./src/cli/process/warm-process.ts";
import { hasTerminal } from "./src/cli/terminal/has-terminal.ts";
const use = looksLikeRun(process.argv.slice(2)) && !hasTerminal() ? "run" : "start";
export const { start } = await runProgram("start", use);`;
  const main = {
    ...shared,
    target: "node22",
    define: { ...shared.define, KCORE_WARMS_UP: String(warmsUp) },
  };
  await build({
    ...main,
    entryPoints: ["src/cli/main.ts"],
    outfile: join(aside, "main.js"),
    plugins: [builtinsAreAsked, comeAsProgram("start", /\/start\.ts$/, start)],
  });
  await build({
    ...main,
    stdin: { contents: `${load} await runProgram("run-main");`, resolveDir: root },
    outfile: join(aside, "run-main.js"),
    plugins: [builtinsAreAsked],
  });
}

try {
  await buildProgram("start", `import { start } from "./src/cli/start.ts"; kcore.give({ start });`);
  await buildProgram(
    "views",
    `import { openLiveView } from "./src/cli/watch/live-view.ts";
import { openFleetScreen } from "./src/cli/top/open-fleet-screen.ts";
kcore.give({ openLiveView, openFleetScreen });`,
  );
  await buildProgram("age", `import { ${ageExports} } from "${agePath}"; kcore.give({ ${ageExports} });`);
  await buildProgram(
    "kubernetes",
    `import { openAccess } from "./src/kubernetes/kubeconfig-access.ts"; kcore.give({ openAccess });`,
  );
  await buildProgram("run-main", `import "./src/cli/run-main.ts";`);
  // The program of nodes is one file: the runtime that kcore pushes with the file starts it.
  await build({
    ...shared,
    entryPoints: ["src/cli/node-main.ts"],
    outfile: join(aside, "node-main.js"),
    target: "node24",
    // CommonJS packages call `require`.
    banner: {
      js: `import { createRequire as kcoreRequire } from "node:module";\nconst require = kcoreRequire(import.meta.url);`,
    },
    plugins: [collectAssets, startsFast],
  });
  await writeFile(join(aside, "module-examples.json"), JSON.stringify(collectExamples()));
  await buildStarters({ warmsUp: true });
  for (const [name, source] of assets) await copyFile(source, join(aside, name));
  const failure = await warmUp(join(aside, "main.js"));
  if (failure !== undefined) process.stderr.write(`kcore will start slower, its warm-up failed: ${failure}\n`);
  await buildStarters({ warmsUp: false });
  await rm(`${target}.old`, { recursive: true, force: true });
  if (existsSync(target)) await rename(target, `${target}.old`);
  await rename(aside, target);
  await rm(`${target}.old`, { recursive: true, force: true });
  const parts = await readdir(target);
  process.stdout.write(`dist: ${parts.length} files\n`);
} finally {
  await rm(aside, { recursive: true, force: true });
}
