import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ifThere, replaceFile } from "#base/file.ts";
import { makeFolder } from "#base/folder.ts";
import { git } from "#base/git.ts";

/** A file that kcore makes, and the effect of making it. */
export interface GeneratedFile {
  /** The path below the folder. */
  readonly path: string;
  /** `kept`: an operator changed it, and it differs from kcore's text. */
  readonly fate: "same" | "written" | "kept";
  /** The file's text afterwards. */
  readonly text: string;
}

/**
 * Writes kcore's files into a folder, except files that an operator has changed: the first line of each has the hash of the other
 * lines. `dryRun`: only returns the effects.
 */
export async function writeGenerated(
  folder: string,
  texts: Readonly<Record<string, string>>,
  { dryRun }: { readonly dryRun: boolean },
): Promise<readonly GeneratedFile[]> {
  const files: GeneratedFile[] = [];
  for (const [path, body] of Object.entries(texts)) {
    const text = `${stampOf(body)}${body}`;
    const found = await ifThere(readFile(join(folder, path), "utf8"));
    if (found === text) files.push({ path, fate: "same", text });
    else if (found !== undefined && !isMadeByKcore(found)) files.push({ path, fate: "kept", text: found });
    else {
      if (!dryRun) {
        await makeFolder(dirname(join(folder, path)));
        await replaceFile(join(folder, path), text, { mode: 0o644 });
      }
      files.push({ path, fate: "written", text });
    }
  }
  return files;
}

/** Whether a file's text is unchanged since kcore wrote it. */
export function isMadeByKcore(text: string): boolean {
  const end = text.indexOf("\n") + 1;
  return end > 0 && text.slice(0, end) === stampOf(text.slice(end));
}

function stampOf(body: string): string {
  const hash = createHash("sha256").update(body).digest("hex");
  return `# Made by kcore, which makes it anew until you change it. ${hash}\n`;
}

/** Has git read the paths from stdin, since a command line may be too short for them. */
const pathsFromStdin = ["--pathspec-from-file=-", "--pathspec-file-nul"];

/** `staged`: the repository has other changes, or git would not commit; `none`: git staged nothing, as without a repository. */
type CommitResult = "committed" | "staged" | "none";

/**
 * Commits only these files of a project, if its repository has no other changes (`isClean`). Otherwise they are staged, which suffices for
 * Nix to see them. Git never asks a question: a commit that needs a signature is left to the operator.
 */
export async function commitFiles(
  project: string,
  files: readonly string[],
  { isClean, message, signal }: { readonly isClean: boolean; readonly message: string; readonly signal: AbortSignal },
): Promise<CommitResult> {
  const input = files.join("\0");
  try {
    await git(project, ["add", ...pathsFromStdin], { signal, input });
  } catch {
    return "none";
  }
  if (!isClean) return "staged";
  try {
    if (await signsCommits(project, signal)) return "staged";
    await git(project, ["commit", "--quiet", "--message", message, "--only", ...pathsFromStdin], { signal, input });
    return "committed";
  } catch {
    return "staged";
  }
}

/** Whether the project is in a repository without uncommitted changes and untracked files. */
export async function isClean(project: string, signal: AbortSignal): Promise<boolean> {
  try {
    return (await git(project, ["status", "--porcelain", "--untracked-files=normal"], { signal })) === "";
  } catch {
    return false;
  }
}

/** Whether git signs commits here: it may then ask for a passphrase on an operator's terminal or screen. */
async function signsCommits(project: string, signal: AbortSignal): Promise<boolean> {
  const words = ["config", "--type=bool", "--default=false", "--get", "commit.gpgSign"];
  return (await git(project, words, { signal })).trim() === "true";
}
