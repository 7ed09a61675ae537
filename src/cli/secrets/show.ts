import { checkPlace, keysOfPath, valueAt } from "#engine/encrypted-values/places.ts";
import { isSealed } from "#engine/step/sealed.ts";
import type { SourceScalar } from "#engine/yaml/node.ts";
import { KcoreError } from "#errors/problem.ts";
import type { CommonFlags } from "../options.ts";
import { nameIn, projectSecrets, treeOf, type ProjectSecrets } from "./project-secrets.ts";
import { printResult } from "../terminal/format-result.ts";

export interface ShowFlags extends CommonFlags {
  readonly output: "text" | "json";
}

/** `kcore secrets show FILE PATH`: one value, byte for byte; a line break follows at a terminal. */
export async function showSecret(file: string, path: string, { project: given, output }: ShowFlags): Promise<void> {
  const project = projectSecrets(given);
  const name = nameIn(project, file);
  const root = treeOf(project, name);
  const keys = keysOfPath(root, path);
  const node = valueAt(root, keys);
  if (node?.kind !== "scalar" || !isSealed(node.value))
    throw new KcoreError({
      code: "USAGE",
      message: node === undefined ? `${name} has no ${path}` : `${path} of ${name} is not sealed`,
      at: node?.at,
      hint: "kcore secrets list shows all that are",
    });
  checkPlace({ node, path: keys });
  const value = await openAt(project, node);
  if (output === "json") printResult({ file: name, path, value: Buffer.from(value).toString() }, "json");
  else process.stdout.write(process.stdout.isTTY ? `${Buffer.from(value).toString()}\n` : value);
}

/** The bytes of a sealed scalar. @throws KcoreError at its place */
export async function openAt({ opener }: Pick<ProjectSecrets, "opener">, node: SourceScalar): Promise<Uint8Array> {
  try {
    return await opener.open(String(node.value));
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    throw new KcoreError(
      error.problems.map((problem) => ({ ...problem, at: node.at })),
      { cause: error },
    );
  }
}
