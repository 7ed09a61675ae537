import { existsSync, type Stats } from "node:fs";
import { join } from "node:path";
import { KcoreError, type SourcePosition } from "#errors/problem.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { readSource } from "#engine/yaml/read.ts";
import type { SourceNode } from "#engine/yaml/node.ts";
import { fingerprintOf } from "./header.ts";
import { encryptedText } from "#engine/step/encrypted-value.ts";

/** The file of a project's recipients, a map from names to keys, beside `roster/`. */
export const RECIPIENTS = "recipients.yaml";

export interface Recipient {
  readonly name: string;
  /** `age1…` or `age1pq1…`. */
  readonly key: string;
  readonly fingerprint: string;
  readonly at: SourcePosition;
}

/**
 * The recipients of a project, in the file's order; none if there is no file.
 * @throws KcoreError SECRET_RECIPIENTS with every problem; errors of {@link readSource} and of `check`
 */
export async function readRecipients(
  project: string,
  check?: (name: string, stats: Stats) => void,
): Promise<readonly Recipient[]> {
  const path = join(project, RECIPIENTS);
  if (!existsSync(path)) return [];
  return recipientsIn(readSource(path, { name: RECIPIENTS, ...(check && { check }) }));
}

/** The recipients of a file's tree. @throws KcoreError SECRET_RECIPIENTS */
export async function recipientsIn(root: SourceNode): Promise<readonly Recipient[]> {
  if (root.kind === "scalar" && root.value === null) return [];
  if (root.kind !== "map") throw invalid("recipients are a map: NAME: age1…", root.at);
  const { isRecipient } = await import("./age.ts");
  const problems = new Problems();
  const recipients = new Map<string, Recipient>();
  for (const { key: name, value } of root.entries.values())
    problems.attempt(() => {
      const key = value.kind === "scalar" ? String(value.value) : "";
      if (!isRecipient(key)) throw notOne(name, key, value.at);
      const fingerprint = fingerprintOf(key);
      const twin = recipients.get(fingerprint);
      if (twin) throw invalid(`“${name}” has the same key as “${twin.name}”`, value.at);
      recipients.set(fingerprint, { name, key, fingerprint, at: value.at });
    });
  problems.throwIfAny();
  return [...recipients.values()];
}

function notOne(name: string, key: string, at: SourcePosition): KcoreError {
  if (key.startsWith("AGE-SECRET-KEY-"))
    return invalid(
      `“${name}” has its identity here, which opens everything`,
      at,
      "make a new one; this one is known now",
    );
  if (key.startsWith("ssh-"))
    return invalid(`“${name}” has an SSH key, and values are sealed to age's own keys`, at, "kcore secrets keygen");
  return invalid(`“${name}” has no age recipient`, at, "age1… as kcore secrets keygen prints it, one for each name");
}

/** The given recipients. @throws KcoreError SECRET_RECIPIENTS if there are none */
export function requireRecipients(recipients: readonly Recipient[]): readonly Recipient[] {
  if (recipients.length > 0) return recipients;
  throw new KcoreError({
    code: "SECRET_RECIPIENTS",
    message: `sealed values could not be opened: ${RECIPIENTS} names no recipient, or is not there`,
    hint: "kcore secrets keygen, and then: kcore secrets recipients add NAME RECIPIENT",
  });
}

function invalid(message: string, at: SourcePosition, hint?: string): KcoreError {
  return new KcoreError({ code: "SECRET_RECIPIENTS", message, at, hint });
}

/** Seals a value to recipients for one place, and returns its text for YAML. */
export async function sealFor(
  value: string | Uint8Array,
  recipients: readonly Recipient[],
  place: string,
): Promise<string> {
  const { seal } = await import("./age.ts");
  const bytes = typeof value === "string" ? Buffer.from(value) : value;
  const keys = recipients.map(({ key }) => key);
  return encryptedText(
    await seal(bytes, keys, { place, fingerprints: recipients.map(({ fingerprint }) => fingerprint) }),
  );
}
