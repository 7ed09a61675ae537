import { enableCompileCache } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { kcoreVersion } from "./version.ts";

// Only what is needed to tell the version stands here; everything else is loaded when it is known to be wanted.
const [first] = process.argv.slice(2);
if (first === "--version" || first === "-V") {
  process.stdout.write(`${kcoreVersion()}\n`);
} else {
  cacheCompiledCode();
  const { start } = await import("./start.ts");
  await start(process.argv);
}

/** In a folder of the user's own: a shared one would let others put code there. */
function cacheCompiledCode(): void {
  if (process.env["NODE_COMPILE_CACHE"] !== undefined || process.env["NODE_DISABLE_COMPILE_CACHE"] !== undefined)
    return;
  const home = process.env["HOME"] === undefined ? undefined : homedir();
  const cache = process.env["XDG_CACHE_HOME"] ?? (home && join(home, ".cache"));
  if (cache) enableCompileCache(join(cache, "kcore", "compiled"));
}
