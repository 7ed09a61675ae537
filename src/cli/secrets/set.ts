import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { readSecretFile } from "#engine/roster/resolve-secret.ts";
import { setValue } from "#engine/roster/edit.ts";
import { keysOfPath, placeOf } from "#engine/encrypted-values/places.ts";
import { someRecipients, sealFor } from "#engine/encrypted-values/recipients.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { MAX_ROSTER_BYTES } from "#engine/yaml/scan.ts";
import { usageError } from "#errors/problem.ts";
import type { CommonFlags } from "../options.ts";
import { askSecret } from "../terminal/confirm.ts";
import { nameIn, projectSecrets, textIfThere, treeOf, writeText } from "./project-secrets.ts";

export interface SetFlags extends CommonFlags {
  readonly fromFile?: string;
}

/** `kcore secrets set FILE PATH`: seals a value that is typed, piped or in a file, and puts it in its place. */
export async function setSecret(file: string, path: string, { project: given, fromFile }: SetFlags): Promise<void> {
  const project = projectSecrets(given);
  const name = nameIn(project, file);
  const recipients = someRecipients(await project.recipients());
  const text = await textIfThere(join(project.root, name));
  // The owner and mode of the file are checked before a secret is asked for.
  if (text !== "") treeOf(project, name);
  const keys = keysOfPath(parseSource(name, text, { maxBytes: MAX_ROSTER_BYTES }), path);
  const value = await valueFrom(fromFile, `Value of ${path}`);
  const sealed = await sealFor(value, recipients, placeOf(name, keys));
  await writeText(project, name, setValue({ file: name, text }, keys, sealed));
  process.stdout.write(`${name}: ${path} is sealed to ${recipients.map((one) => one.name).join(", ")}\n`);
}

/** @throws KcoreError USAGE for a value that a run could not use */
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
