import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { checkPlace, keysOfPath, placeText, valueAt } from "#engine/encrypted-values/places.ts";
import { isEncrypted } from "#engine/step/encrypted-value.ts";
import type { SourceScalar } from "#engine/yaml/node.ts";
import { KcoreError, usageError } from "#errors/problem.ts";
import { readSecretFile } from "#engine/roster/resolve-secret.ts";
import { setValue } from "#engine/roster/edit.ts";
import { requireRecipients, sealFor } from "#engine/encrypted-values/recipients.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { MAX_ROSTER_BYTES } from "#engine/yaml/regular-file.ts";
import type { CommonFlags } from "../options.ts";
import { nameIn, projectSecrets, textIfThere, readTree, writeText, type ProjectSecrets } from "./project-secrets.ts";
import { printResult } from "../terminal/format-result.ts";
import { askSecret } from "../terminal/ask-operator.ts";

export interface ShowSecretFlags extends CommonFlags {
  readonly output: "text" | "json";
}

/** `kcore secrets show FILE PATH`: prints one value byte for byte, on a terminal with a line break. */
export async function showSecret(
  file: string,
  path: string,
  { project: given, output }: ShowSecretFlags,
): Promise<void> {
  const project = projectSecrets(given);
  const name = nameIn(project, file);
  const root = readTree(project, name);
  const keys = keysOfPath(root, path);
  const node = valueAt(root, keys);
  if (node?.kind !== "scalar" || !isEncrypted(node.value))
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

/** Opens a sealed scalar; returns its bytes. @throws KcoreError at the scalar's place */
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

interface SetFlags extends CommonFlags {
  readonly fromFile?: string;
}

/** `kcore secrets set FILE PATH`: seals a value that is typed, piped or read from a file, and writes it at PATH. */
export async function setSecret(file: string, path: string, { project: given, fromFile }: SetFlags): Promise<void> {
  const project = projectSecrets(given);
  const name = nameIn(project, file);
  const recipients = requireRecipients(await project.recipients());
  const text = await textIfThere(join(project.root, name));
  // readTree checks the owner and mode of the file before a secret is typed.
  if (text !== "") readTree(project, name);
  const keys = keysOfPath(parseSource(name, text, { maxBytes: MAX_ROSTER_BYTES }), path);
  const value = await valueFrom(fromFile, `Value of ${path}`);
  const sealed = await sealFor(value, recipients, placeText(name, keys));
  await writeText(project, name, setValue({ file: name, text }, keys, sealed));
  process.stdout.write(`${name}: ${path} is sealed to ${recipients.map((one) => one.name).join(", ")}\n`);
}

/** The value from a file, the terminal or stdin. @throws KcoreError USAGE for a value that a run could not use */
async function valueFrom(file: string | undefined, question: string): Promise<Uint8Array> {
  const value = await readValue(file, question);
  const text = new TextDecoder("utf-8", { fatal: false }).decode(value);
  const refuse = (why: string): never => {
    throw usageError(`the value ${why}; nothing was changed`);
  };
  if (text.replace(/\r?\n$/, "") === "") refuse("is empty");
  if (text.includes("\0")) refuse("holds a NUL byte");
  if (text.includes("\uFFFD")) refuse("is not UTF-8 text");
  return value;
}

async function readValue(file: string | undefined, question: string): Promise<Uint8Array> {
  if (file !== undefined) return readSecretFile(file);
  const typed = await askSecret(question);
  return typed === undefined ? buffer(process.stdin) : Buffer.from(typed);
}
