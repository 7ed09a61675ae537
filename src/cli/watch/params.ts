import { readFile } from "node:fs/promises";
import { relative, resolve } from "node:path";
import type { ParamDeclarations } from "#engine/params/declare-params.ts";
import { KcoreError, usageError } from "#errors/problem.ts";
import { formatTable } from "../terminal/format-table.ts";

/** Declared parameters as data. */
export function plainParams(params: ParamDeclarations) {
  return [...params.values()].map(({ name, type, required, oneOf, description = "" }) => ({
    name,
    type,
    required,
    ...(oneOf && { oneOf }),
    description,
  }));
}

/** Declared parameters as a table after an empty line; empty without parameters. */
export function drawParams(params: ParamDeclarations): string {
  const rows = [...params.values()].map(({ name, type, required, oneOf = [], default: preset, description = "" }) => [
    name,
    oneOf.length > 0 ? oneOf.join(" | ") : type,
    required ? "required" : preset?.kind === "scalar" && preset.value !== "" ? String(preset.value) : "",
    description,
  ]);
  return rows.length === 0 ? "" : `\n${formatTable(["PARAMETER", "TYPE", "DEFAULT", "MEANING"], rows)}`;
}

/** The values of `--set a=b` as texts, which the declared types convert later. @throws KcoreError USAGE */
export function readSets(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const equals = pair.indexOf("=");
      if (equals > 0) return [pair.slice(0, equals), pair.slice(equals + 1)];
      throw usageError(`--set ${pair} names no value`, "--set name=value");
    }),
  );
}

/**
 * `--params`: a JSON object, or `@FILE` that holds one; sealed values in a file of the project must stand in their places.
 * @throws KcoreError USAGE, FILE_UNREADABLE, SECRET_MISPLACED
 */
export async function readParams(
  given: string | undefined,
  project: string | undefined,
): Promise<Record<string, unknown>> {
  if (given === undefined) return {};
  const text = given.startsWith("@") ? await readParamsFile(given.slice(1)) : given;
  if (given.startsWith("@") && text.includes("age:")) await checkSealedPlaces(given.slice(1), text, project);
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

async function checkSealedPlaces(file: string, text: string, project: string | undefined): Promise<void> {
  const { checkPlaces } = await import("#engine/encrypted-values/places.ts");
  const { parseSource } = await import("#engine/yaml/parse.ts");
  const { Problems } = await import("#engine/yaml/problems.ts");
  const { findProject } = await import("../project/find-project.ts");
  const problems = new Problems();
  checkPlaces(parseSource(relative(findProject(project), resolve(file)), text), problems);
  problems.throwIfAny();
}

async function readParamsFile(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw new KcoreError(
      { code: "FILE_UNREADABLE", message: `cannot read ${file}: ${(cause as Error).message}` },
      { cause },
    );
  }
}
