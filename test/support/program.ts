import { existsSync, globSync, statSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");
const bundle = join(root, "dist/main.js");

/** Whether the bundle is up to date with the sources; `npm test` and `npm run build` make it. */
const isBuilt =
  existsSync(bundle) &&
  ["scripts/build.ts", ...globSync("src/**/*", { cwd: root })].every(
    (name) =>
      statSync(join(root, name)).mtimeMs <= statSync(bundle).mtimeMs || statSync(join(root, name)).isDirectory(),
  );

/**
 * The environment of a kcore under test. An up-to-date bundle needs none. Otherwise the sources run, which take several times as long to
 * start; Node's compile cache stays for the next start.
 */
export const kcoreEnvironment: Readonly<Record<string, string>> = isBuilt
  ? {}
  : { KCORE_SOURCE: "1", NODE_COMPILE_CACHE: join(root, "node_modules/.cache/kcore-tests") };

/** The program of the command line, as its launcher starts it. */
export const programFile = join(root, isBuilt ? "dist/main.js" : "src/cli/main.ts");

/** The program of the nodes: daemons and their maintenance. */
export const nodeProgram = join(root, isBuilt ? "dist/node-main.js" : "src/cli/node-main.ts");
