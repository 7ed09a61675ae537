import { copyFile, readdir, readFile, rename, rm } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { build, type Plugin } from "esbuild";

/**
 * Bundles the command line into `dist/`: ES modules with lazily loaded parts. The new bundle is made aside and put in
 * place at the end, so that a running kcore never meets half of one.
 */
const root = join(import.meta.dirname, "..");
const aside = join(root, `dist.${process.pid}`);
const target = join(root, "dist");

// Packages of the CommonJS kind ask for these; ssh2 needs __dirname.
const banner = [
  `import { createRequire as kcoreRequire } from "node:module";`,
  `import { dirname as kcoreDirname } from "node:path";`,
  `import { fileURLToPath as kcorePath } from "node:url";`,
  `const require = kcoreRequire(import.meta.url);`,
  `const __filename = kcorePath(import.meta.url);`,
  `const __dirname = kcoreDirname(__filename);`,
].join("\n");

const entries = ["src/cli/main.ts", "src/cli/node-main.ts"].filter((path) => existsSync(join(root, path)));

/** `new URL("./runner.sh", import.meta.url)` means a file beside the source; it is put beside the bundle. */
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

try {
  await build({
    absWorkingDir: root,
    entryPoints: entries,
    outdir: aside,
    entryNames: "[name]",
    chunkNames: "part-[hash]",
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node22",
    sourcemap: false,
    legalComments: "none",
    minifySyntax: true,
    minifyWhitespace: true,
    keepNames: true,
    external: ["cpu-features"],
    loader: { ".node": "empty" },
    define: { "process.env.NODE_ENV": '"production"' },
    banner: { js: banner },
    plugins: [collectAssets],
    logLevel: "warning",
  });
  for (const [name, source] of assets) await copyFile(source, join(aside, name));
  await rm(`${target}.old`, { recursive: true, force: true });
  if (existsSync(target)) await rename(target, `${target}.old`);
  await rename(aside, target);
  await rm(`${target}.old`, { recursive: true, force: true });
  const parts = await readdir(target);
  process.stdout.write(`dist: ${entries.length} programs, ${parts.length} files\n`);
} finally {
  await rm(aside, { recursive: true, force: true });
}
