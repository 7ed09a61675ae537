import { createHash } from "node:crypto";
import type { HeartbeatReply } from "#api/schemas.ts";
import type { Certificates } from "./certificates.ts";
import type { Records } from "./records.ts";
import { keys } from "./registers.ts";

const prefix = keys.revoked("");

/** The revoked keys that agents must know: all except the keys of nodes and sub-CAs. */
export function watchRevocations(records: Records, certificates: Pick<Certificates, "isNoCaller">) {
  const revoked = new Set<string>();
  let version: string | undefined;
  // Nodes' keys are left out: agents answer no nodes, and each renewal revokes a key.
  const note = (spki: string): void => {
    const concernsAgents = records.replica.stands(keys.revoked(spki)) && !certificates.isNoCaller(spki);
    if (concernsAgents === revoked.has(spki)) return;
    if (concernsAgents) revoked.add(spki);
    else revoked.delete(spki);
    version = undefined;
  };
  for (const [key] of records.replica.entries(prefix)) note(key.slice(prefix.length));
  for (const key of records.replica.unreadable(prefix)) note(key.slice(prefix.length));
  const stop = records.replica.watch((changed) => {
    for (const key of changed) {
      if (key.startsWith(prefix)) note(key.slice(prefix.length));
      // The key's holder may become known after the revocation.
      const spki = key.startsWith("cert/") ? records.value("certificate", key)?.spki : undefined;
      if (spki !== undefined && records.replica.stands(keys.revoked(spki))) note(spki);
    }
  });
  return {
    /** The reply to an agent with the version `knownVersion`: all revoked keys, or nothing if the agent has them or names no version. */
    newsFor(knownVersion: string | undefined): Pick<HeartbeatReply, "revoked"> {
      if (knownVersion === undefined) return {};
      version ??= versionOfKeys(revoked);
      return knownVersion === version ? {} : { revoked: { version, keys: [...revoked] } };
    },
    stop,
  };
}

/** The version of a set of keys, equal on every controller; empty for no keys. */
function versionOfKeys(spkis: ReadonlySet<string>): string {
  if (spkis.size === 0) return "";
  return createHash("sha256")
    .update([...spkis].toSorted().join(" "))
    .digest("hex")
    .slice(0, 32);
}
