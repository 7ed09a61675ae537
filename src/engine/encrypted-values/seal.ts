import { sealedText } from "#engine/step/sealed.ts";
import type { Recipient } from "./recipients.ts";

/** A value sealed to recipients for one place, as it stands in YAML. */
export async function sealFor(
  value: string | Uint8Array,
  recipients: readonly Recipient[],
  place: string,
): Promise<string> {
  const { seal } = await import("./age.ts");
  const bytes = typeof value === "string" ? Buffer.from(value) : value;
  const keys = recipients.map(({ key }) => key);
  return sealedText(await seal(bytes, keys, { place, fingerprints: recipients.map(({ fingerprint }) => fingerprint) }));
}
