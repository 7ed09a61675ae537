import { enableCompileCache } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

/** Where Node keeps compiled code between starts: a folder of the user's own, a shared one would let others put code there. */
function folder(): string | undefined {
  if (process.env["NODE_DISABLE_COMPILE_CACHE"] !== undefined) return undefined;
  if (process.env["NODE_COMPILE_CACHE"] !== undefined) return process.env["NODE_COMPILE_CACHE"];
  const home = process.env["HOME"] === undefined ? undefined : homedir();
  const cache = process.env["XDG_CACHE_HOME"] ?? (home && join(home, ".cache"));
  return cache && join(cache, "kcore", "compiled");
}

/** Caches what is loaded from now on. */
export function cacheCompiledCode(): void {
  const cache = folder();
  if (cache !== undefined && process.env["NODE_COMPILE_CACHE"] === undefined) enableCompileCache(cache);
}

/** The environment for a Node process that caches all its code, its first file too. */
export function cachingEnvironment(): NodeJS.ProcessEnv {
  const cache = folder();
  return { ...process.env, ...(cache !== undefined && { NODE_COMPILE_CACHE: cache }) };
}
