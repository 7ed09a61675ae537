import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ifThere, replaceFile } from "#base/file.ts";
import { makeFolder } from "#base/folder.ts";

/** The fate of a file that kcore made, or would make. */
export interface Generated {
  /** Below the folder. */
  readonly path: string;
  /** `kept`: an operator changed it, and it differs from kcore's text. */
  readonly fate: "same" | "written" | "kept";
  /** The file's text then. */
  readonly text: string;
}

/**
 * Files that kcore makes, and makes again only while they are unchanged: the first line of each has the hash of the lines behind
 * it. `dryRun`: only tells.
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
