import { isAscii } from "node:buffer";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Script } from "node:vm";

/** True only while scripts/build.ts warms up the bundle that it has built. */
declare const KCORE_WARMS_UP: boolean;

/**
 * The values that a program of the bundle gets (scripts/build.ts, `buildProgram`); the program calls `give` with its exports.
 */
interface ProgramScope {
  readonly url: string;
  readonly require: NodeJS.Require;
  readonly run: typeof runProgram;
  readonly give: (exports: unknown) => void;
}

/**
 * Runs a program of the bundle with V8's compiled code from the build, and resolves with its exports. Node's own cache
 * holds only code that is compiled before anything runs. The build's cache holds all code that a usual run executes, whose
 * compilation took half of the start. V8 compiles anew if another Node than the pinned one runs. `use`: a kind of run
 * whose code is cached apart.
 */
export async function runProgram(name: string, use = name): Promise<unknown> {
  const source = new URL(`./${name}.program`, import.meta.url);
  const compiled = new URL(`./${use}.compiled`, import.meta.url);
  const cachedData = readIfThere(compiled);
  const bytes = readFileSync(source);
  // Decoding UTF-8 takes 7 ms, which plain ASCII does not need.
  const script = new Script(bytes.toString(isAscii(bytes) ? "latin1" : "utf8"), {
    filename: source.pathname,
    ...(cachedData && { cachedData }),
  });
  if (KCORE_WARMS_UP) process.on("exit", () => writeFileSync(compiled, script.createCachedData()));
  const run = script.runInThisContext() as (surroundings: ProgramScope) => Promise<void>;
  let given: unknown;
  await run({
    url: import.meta.url,
    require: createRequire(import.meta.url),
    run: runProgram,
    give: (exports) => (given = exports),
  });
  return given;
}

function readIfThere(file: URL): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch {
    return undefined;
  }
}
