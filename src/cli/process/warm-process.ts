import { spawn } from "node:child_process";
import { dirname, extname, join } from "node:path";
import type { WarmProcess } from "#engine/run/launch-run.ts";

/** The first words of commands that start a run; a wrong guess costs a process that ends by itself. */
const runCommands: ReadonlySet<string> = new Set(["orchestrate", "state apply"]);

/** Whether a command line looks as if it started a run. */
export function looksLikeRun(words: readonly string[]): boolean {
  const own = words.includes("--") ? words.slice(0, words.indexOf("--")) : words;
  const [first = "", second = ""] = own;
  if (own.some((word) => word === "--help" || word === "-h")) return false;
  return runCommands.has(first) ? first !== "orchestrate" || second !== "" : runCommands.has(`${first} ${second}`);
}

/** The command line of a run's process: Node with its flags, and run-main beside the program that runs now. */
export function runMain(): readonly [string, ...string[]] {
  const own = process.argv[1] ?? "";
  return [...ownNode(), join(dirname(own), `run-main${extname(own)}`)];
}

/** Node with the flags of this process. A view's limit of old memory (bin/kcore) is too low for a thousand connections; its limit of young memory is not. */
export function ownNode(): readonly [string, ...string[]] {
  return [process.execPath, ...process.execArgv.filter((flag) => !flag.startsWith("--max-old-space-size="))];
}

/**
 * Starts a run's process before its run is known, so that it loads while the command line is read. The run is named on
 * its stdin; if stdin closes without a word, the process ends. The passphrase is not in its environment.
 */
export function startWarm(): WarmProcess {
  const [command, ...words] = runMain();
  const { KCORE_PASSPHRASE_FD: _, KCORE_CA_PASSPHRASE: __, ...env } = process.env;
  const warm = spawn(command, words, { env, detached: true, stdio: ["pipe", "ignore", "pipe", "pipe"] });
  // Without a listener an error would end kcore; launchRun finds out later whether the process lives.
  warm.on("error", () => undefined);
  return warm;
}
