import type { Bundle, SignedStatement, UpdateSpec } from "#rollout/spec.ts";
import { hashOf } from "#controller/updates/update-records.ts";
import { Statement, UpdateSpec as Spec } from "#rollout/spec.ts";

export const cluster = "sim";
export const epochMs = 1_700_000_000_000;
/** What each node runs in the beginning. */
export const first = storePath("g0");

export function storePath(version: string): string {
  return `/nix/store/${"0".repeat(32)}-${version}`;
}

/** The version that a store path names. */
export function versionOf(path: string): string {
  return path.slice(path.lastIndexOf("-") + 1);
}

export const parseSpec = (spec: object): UpdateSpec => Spec.parse(spec);

function bundleOf(version: string): Bundle {
  const path = storePath(version);
  return { sha256: "0".repeat(64), size: 1, storePath: path, narHash: `sha256:${"0".repeat(52)}`, version, arch: "x" };
}

/** A manifest as the bastion signs it, with an empty signature, `at` ms after all began: the simulator runs none of the code that checks signatures. */
export function sign(
  name: string,
  version: string,
  spec: UpdateSpec,
  at: number,
): { readonly signed: SignedStatement; readonly hash: string } {
  const signedAt = new Date(epochMs + at).toISOString();
  const said = Statement.parse({
    kind: "ClusterUpdate",
    cluster,
    name,
    spec,
    bundle: bundleOf(version),
    signedAt,
  });
  return { signed: { statement: JSON.stringify(said), signature: "", signer: "" }, hash: hashOf(said) };
}

const read = new Map<string, Statement>();

export function statementOf({ statement }: SignedStatement): Statement {
  const known = read.get(statement) ?? Statement.parse(JSON.parse(statement));
  read.set(statement, known);
  return known;
}
