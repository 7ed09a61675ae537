import { createHash } from "node:crypto";

/** The random namespace of all of kcore's UUIDs. It must never change: disks in use carry UUIDs derived from it. */
const kcoreNamespace = "9f6a3f0e-5a0b-4c57-9d0c-3f1f7f0f2d61";

/**
 * The UUID (version 5, RFC 9562 section 5.5) of a name in kcore's namespace. The same parts give the same UUID on every
 * machine, so that kcore recognizes tables, filesystems and volumes that it made.
 */
export function uuidOf(...parts: readonly string[]): string {
  const namespace = Buffer.from(kcoreNamespace.replaceAll("-", ""), "hex");
  // No part can contain the separator, so no two lists of parts give the same name.
  const bytes = createHash("sha1").update(namespace).update(parts.join("\0")).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
