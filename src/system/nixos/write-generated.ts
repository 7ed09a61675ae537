import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ifThere, replaceFile } from "#base/file.ts";
import { makeFolder } from "#base/folder.ts";
import { git } from "#base/git.ts";

/** The fate of a file that kcore made, or would make. */
export interface Generated {
  /** Below the folder. */
  readonly path: string;
  /** `kept`: an operator changed it, and it differs from kcore's text. */
  readonly fate: "same" | "written" | "kept";
  /** The file's text afterwards. */
  readonly text: string;
}

/**
 * Writes files that kcore makes, and again only while they are unchanged: the first line of each has the hash of the lines
 * after it. `dryRun`: writes nothing.
 */
export async function writeGenerated(
  folder: string,
  texts: Readonly<Record<string, string>>,
  { dryRun }: { readonly dryRun: boolean },
): Promise<readonly Generated[]> {
  const files: Generated[] = [];
  for (const [path, body] of Object.entries(texts)) {
    const text = `${stampOf(body)}${body}`;
    const found = await ifThere(readFile(join(folder, path), "utf8"));
    if (found === text) files.push({ path, fate: "same", text });
    else if (found !== undefined && !isOurs(found)) files.push({ path, fate: "kept", text: found });
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

/** Whether the text is kcore's, letter by letter. */
export function isOurs(text: string): boolean {
  const end = text.indexOf("\n") + 1;
  return end > 0 && text.slice(0, end) === stampOf(text.slice(end));
}

function stampOf(body: string): string {
  const hash = createHash("sha256").update(body).digest("hex");
  return `# Made by kcore, which makes it anew until you change it. ${hash}\n`;
}

/** git reads the names from stdin, since a command line may be too short for them. */
const listed = ["--pathspec-from-file=-", "--pathspec-file-nul"];

/** `committed`; `staged`: there was other work in the repository, or git would not commit; `none`: no repository. */
type Fate = "committed" | "staged" | "none";

/**
 * Commits these files of a project alone, where nothing else in its repository was changed. Otherwise they are only staged, which is enough
 * for Nix to see them. Never asks a question: a commit that needs a signature is left to the operator.
 */
export async function commitFiles(
  project: string,
  files: readonly string[],
  { isClean, message, signal }: { readonly isClean: boolean; readonly message: string; readonly signal: AbortSignal },
): Promise<Fate> {
  const input = files.join("\0");
  try {
    await git(project, ["add", ...listed], { signal, input });
  } catch {
    return "none";
  }
  if (!isClean) return "staged";
  try {
    if (await signs(project, signal)) return "staged";
    await git(project, ["commit", "--quiet", "--message", message, "--only", ...listed], { signal, input });
    return "committed";
  } catch {
    return "staged";
  }
}

/** Whether the project is in a repository without any change that is not committed, untracked files included. */
export async function isClean(project: string, signal: AbortSignal): Promise<boolean> {
  try {
    return (await git(project, ["status", "--porcelain", "--untracked-files=normal"], { signal })) === "";
  } catch {
    return false;
  }
}

/** Whether git signs commits here: it may then ask for a passphrase on an operator's terminal or screen. */
async function signs(project: string, signal: AbortSignal): Promise<boolean> {
  const words = ["config", "--type=bool", "--default=false", "--get", "commit.gpgSign"];
  return (await git(project, words, { signal })).trim() === "true";
}
