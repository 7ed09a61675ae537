import { generate, recipientOf } from "#engine/encrypted-values/age.ts";
import { fingerprintOf } from "#engine/encrypted-values/header.ts";
import type { Recipient } from "#engine/encrypted-values/recipients.ts";

/** An operator's age identity, and its recipient. */
export interface Person {
  readonly identity: string;
  readonly recipient: Recipient;
}

export async function person(name: string, { postQuantum = false } = {}): Promise<Person> {
  const identity = await generate({ postQuantum });
  const key = (await recipientOf(identity)) ?? "";
  const at = { file: "recipients.yaml", line: 1, column: 1 };
  return { identity, recipient: { name, key, fingerprint: fingerprintOf(key), at } };
}

/** A sealed value with changed bytes. */
export function changedAt(text: string, change: (bytes: Buffer) => Buffer): string {
  return `age:${change(Buffer.from(text.slice(4), "base64")).toString("base64")}`;
}
