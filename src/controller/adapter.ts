import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Adapter } from "lowdb";
import { KcoreError } from "#errors/problem.ts";
import { replaceFile } from "#pki/files.ts";

const format = "kcore-store/1";

/**
 * Keeps a value in one JSON file so that an acknowledged write survives a crash: lowdb's own adapter neither flushes nor
 * keeps the mode (research: dependencies.md, section 4). A checksum tells damage that is still valid JSON.
 * `check` turns what was read into the value, or throws.
 */
export function durableFile<Value>(file: string, check: (value: unknown) => Value): Adapter<Value> {
  return {
    async read() {
      const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return undefined;
        throw new KcoreError(
          { code: "FILE_UNREADABLE", message: `${file} cannot be read: ${error.message}` },
          { cause: error },
        );
      });
      return text === undefined ? null : open(file, text, check);
    },
    async write(value) {
      const state = JSON.stringify(value);
      const head = JSON.stringify({ format, sha256: sha256(state) });
      try {
        await replaceFile(file, `${head}\n${state}\n`);
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new KcoreError(
          {
            code: "STORE_UNWRITABLE",
            message: `the controller's state cannot be written to ${file}: ${reason}`,
            hint: "free space on that file system; nothing was acknowledged, and the next change is tried again",
          },
          { cause: error },
        );
      }
    },
  };
}

function open<Value>(file: string, text: string, check: (value: unknown) => Value): Value {
  const damaged = (what: string, cause?: unknown): KcoreError =>
    new KcoreError(
      {
        code: "STORE_CORRUPT",
        message: `the controller's state in ${file} is damaged: ${what}`,
        hint: `look at it; then restore it from a backup, or move it away to start empty: nodes register again by themselves, approvals and rejections are lost`,
      },
      { cause },
    );
  const [head = "", state = "", ...rest] = text.split("\n");
  const header = parse(head) as { format?: unknown; sha256?: unknown } | undefined | null;
  if (typeof header !== "object" || header === null) throw damaged("it does not begin with a header");
  if (header.format !== format) {
    throw new KcoreError({
      code: "STORE_CORRUPT",
      message: `the controller's state in ${file} has the format “${String(header.format)}”, not ${format}`,
      hint: "a newer kcore wrote it? Then run that version",
    });
  }
  if (rest.join("") !== "" || header.sha256 !== sha256(state)) throw damaged("its checksum does not match");
  try {
    return check(JSON.parse(state));
  } catch (error) {
    throw damaged(error instanceof Error ? error.message : String(error), error);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
