import { readFile } from "node:fs/promises";
import { KcoreError } from "#errors/problem.ts";

/** `--set a=b`: always text, the orchestration's declared type decides. */
export function readSets(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const equals = pair.indexOf("=");
      if (equals > 0) return [pair.slice(0, equals), pair.slice(equals + 1)];
      throw new KcoreError({ code: "USAGE", message: `--set ${pair} names no value`, hint: "--set name=value" });
    }),
  );
}

/** `--params`: a JSON object, or `@FILE` that holds one. @throws KcoreError USAGE, FILE_UNREADABLE */
export async function readParams(given: string | undefined): Promise<Record<string, unknown>> {
  if (given === undefined) return {};
  const text = given.startsWith("@") ? await readText(given.slice(1)) : given;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
    throw new SyntaxError("it is not an object");
  } catch (cause) {
    throw new KcoreError(
      {
        code: "USAGE",
        message: `--params is not a JSON object: ${(cause as Error).message}`,
        hint: `--params '{"name": "value"}' or --params @FILE`,
      },
      { cause },
    );
  }
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw new KcoreError(
      { code: "FILE_UNREADABLE", message: `cannot read ${file}: ${(cause as Error).message}` },
      { cause },
    );
  }
}
