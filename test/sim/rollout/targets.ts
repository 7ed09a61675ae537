import type { UpdateDraft } from "#api/update-schemas.ts";
import type { Bundle, SignedStatement, UpdateSpec } from "#rollout/spec.ts";
import { UpdateStatement, UpdateSpec as Spec } from "#rollout/spec.ts";
import { ownershipOf } from "#support/ownership.ts";

export const cluster = "sim";
/** The beginning of simulated time, ms since 1970. */
export const epochMs = 1_700_000_000_000;
/** The first version of each node. */
export const first = storePath("g0");

export function storePath(version: string): string {
  return `/nix/store/${"0".repeat(32)}-${version}`;
}

/** The version in a store path. */
export function versionOf(path: string): string {
  return path.slice(path.lastIndexOf("-") + 1);
}

export const parseSpec = (spec: object): UpdateSpec => Spec.parse(spec);

/** A bundle that all controllers have. */
export function bundleOf(version: string): Bundle {
  const path = storePath(version);
  return { sha256: "0".repeat(64), size: 1, storePath: path, narHash: `sha256:${"0".repeat(52)}`, version, arch: "x" };
}

/** A manifest as the bastion signs it, with an empty signature: the simulator does not run the code that checks signatures. */
export function sign(draft: UpdateDraft, now: number): SignedStatement {
  const signedAt = new Date(epochMs + now).toISOString();
  const contents = UpdateStatement.parse({ kind: "ClusterUpdate", cluster, ...draft, signedAt });
  return { statement: JSON.stringify(contents), signature: "", signer: "" };
}

/** The owner of an update as the bastion signs it, with an empty signature. */
export function signOwner(
  name: string,
  { id, epoch }: { readonly id: string; readonly epoch: number },
  now: number,
): SignedStatement {
  const contents = ownershipOf({ cluster, name, owner: id, epoch, signedAt: new Date(epochMs + now).toISOString() });
  return { statement: JSON.stringify(contents), signature: "", signer: "" };
}

/** Parsed statements by their text. */
const statements = new Map<string, UpdateStatement>();

export function statementOf({ statement }: SignedStatement): UpdateStatement {
  const known = statements.get(statement) ?? UpdateStatement.parse(JSON.parse(statement));
  statements.set(statement, known);
  return known;
}
