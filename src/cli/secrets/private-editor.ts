import {
  accessSync,
  constants,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { run } from "#base/process.ts";
import { exitCodes, usageError } from "#errors/problem.ts";

/** The f_type of tmpfs, a file system in memory (statfs(2), TMPFS_MAGIC). */
const tmpfsType = 0x0102_1994;

/** A file to edit, in a folder that only this user may enter. */
export interface PrivateFile {
  /** Runs the editor and returns the text afterwards. @throws KcoreError USAGE when the editor fails */
  edit(): Promise<string>;
  /** Whether the folder was removed, as after a signal. */
  isGone(): boolean;
}

/** Makes a private file of `text` for the time of `work`; its folder is removed in any case, also after Ctrl-C. */
export async function inEditor(text: string, name: string, work: (file: PrivateFile) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(folderInMemory(), "kcore-secrets-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  const stop = new AbortController();
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const end = (): void => {
    stop.abort();
    process.exit(exitCodes.interrupted);
  };
  process.once("exit", remove);
  for (const signal of signals) process.on(signal, end);
  try {
    const file = join(folder, basename(name));
    writeFileSync(file, text, { mode: 0o600, flag: "wx" });
    await work({
      isGone: () => !existsSync(folder),
      edit: async () => {
        await runEditor(file, stop.signal);
        return readFileSync(file, "utf8");
      },
    });
  } finally {
    for (const signal of signals) process.off(signal, end);
    process.off("exit", remove);
    remove();
  }
}

/** $VISUAL or $EDITOR may be a command with words of its own: `code --wait`. */
async function runEditor(file: string, signal: AbortSignal): Promise<void> {
  const { VISUAL: visual = "", EDITOR: editor = "" } = process.env;
  const words = ["/bin/sh", "-c", `${visual || editor || "vi"} "$1"`, "sh", file];
  const ended = await run(words, { inherit: "terminal", signal, graceMs: 5_000 });
  if (ended.code === 0) return;
  throw usageError(
    `the editor ended with ${ended.signal ?? ended.code}; nothing was changed`,
    "EDITOR names the editor",
  );
}

/** A folder in memory, so that the edited text never reaches a disk; else the usual one, with a warning. */
function folderInMemory(): string {
  const { XDG_RUNTIME_DIR: runtime } = process.env;
  const found = [runtime, "/dev/shm"].find((folder) => folder !== undefined && isInMemory(folder));
  if (found !== undefined) return found;
  process.stderr.write(
    `no folder in memory can be used here: the edited text lies on the disk for a while, in ${tmpdir()}\n`,
  );
  return tmpdir();
}

function isInMemory(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return statfsSync(folder).type === tmpfsType;
  } catch {
    return false;
  }
}
