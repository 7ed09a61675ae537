import { join } from "node:path";
import { z } from "zod";
import { flakeUrl } from "#rollout/flake-url.ts";
import { StorePath, type UpdateSpec } from "#rollout/spec.ts";
import { UpdateFailure } from "./failure.ts";
import { must } from "./nix.ts";
import { runOutside } from "./outside.ts";
import type { Ports } from "./ports.ts";

/** A link that protects the last built system from the garbage collector until it is activated. */
export const builtLink = (folder: string): string => join(folder, "system");

export interface SystemBuild {
  readonly ports: Ports;
  /** The folder of updates. */
  readonly folder: string;
  readonly target: UpdateSpec["target"];
  /** The node's name, used if the target names no configuration. */
  readonly hostName: string;
  readonly left: () => number;
}

/**
 * Builds the NixOS system that a target names for this node, or finds it built; returns its store path. The result depends on the target
 * alone: the flake and its inputs are pinned to commits, and the flake's settings for Nix are ignored.
 * @throws UpdateFailure of the kind build, with the end of the output of Nix
 */
export async function buildSystem(build: SystemBuild): Promise<string> {
  const { ports, folder, target, hostName } = build;
  const { flakeRef = "", flakeRev = "", nixpkgsRev, systemProfile: name = hostName } = target;
  const url = flakeUrl(flakeRef, flakeRev);
  if (url === undefined) throw new UpdateFailure("refused", `“${flakeRef}” is no flake that a commit pins`);
  if (!/^[\w.-]+$/.test(name)) throw new UpdateFailure("refused", `“${name}” is no name of a configuration`);
  const inputs = nixpkgsRev === undefined ? ["--no-update-lock-file"] : await overrideNixpkgs(build, url, nixpkgsRev);
  const link = builtLink(folder);
  const words = [
    "build",
    `${url}#nixosConfigurations."${name}".config.system.build.toplevel`,
    "--out-link",
    link,
    // After a power cut Nix must not take incomplete paths for whole.
    "--option",
    "sync-before-registering",
    "true",
    ...inputs,
  ];
  await nix(build, words).catch(explainLock);
  const path = StorePath.safeParse(await ports.readLink(link));
  if (!path.success) throw new UpdateFailure("build", `${url} has no NixOS system as “${name}”`);
  await must(ports, ["sync"], { kind: "build", limitMs: build.left() });
  return path.data;
}

function explainLock(error: unknown): never {
  if (!(error instanceof UpdateFailure) || !/lock file/.test(error.message)) throw error;
  const how = "the flake's flake.lock does not name a commit of every input: nix flake lock, and commit it";
  throw new UpdateFailure("refused", `${how}\n${error.message}`, { cause: error });
}

async function nix(build: SystemBuild, words: readonly string[]): Promise<string> {
  const { ports, left } = build;
  const flags = ["--extra-experimental-features", "nix-command flakes", "--option", "accept-flake-config", "false"];
  return must({ run: (all) => runOutside(ports, all, left) }, ["nix", ...flags, ...words], {
    kind: "build",
    limitMs: left(),
  });
}

const Locked = z.object({
  type: z.string(),
  owner: z.string().optional(),
  repo: z.string().optional(),
  url: z.string().optional(),
  ref: z.string().optional(),
  host: z.string().optional(),
});
const Metadata = z.object({
  locks: z.object({
    root: z.string(),
    nodes: z.record(
      z.string(),
      z.object({ inputs: z.record(z.string(), z.unknown()).optional(), locked: Locked.optional() }),
    ),
  }),
});

/** Overrides nixpkgs with another commit, from the source that the flake has locked. */
async function overrideNixpkgs(build: SystemBuild, url: string, rev: string): Promise<readonly string[]> {
  const said = await nix(build, ["flake", "metadata", "--json", "--no-write-lock-file", url]);
  const { root, nodes } = Metadata.parse(JSON.parse(said)).locks;
  const input = nodes[root]?.inputs?.["nixpkgs"];
  const locked = typeof input === "string" ? nodes[input]?.locked : undefined;
  const place = locked && flakeUrl(referenceOf(locked), rev);
  if (place === undefined)
    throw new UpdateFailure("refused", `the flake has no input “nixpkgs” of its own that nixpkgsRev could pin`);
  return ["--override-input", "nixpkgs", place];
}

function referenceOf({ type, owner, repo, url, ref, host }: z.infer<typeof Locked>): string {
  if (type !== "git") return `${type}:${owner}/${repo}${host === undefined ? "" : `?host=${host}`}`;
  return `git+${url}${ref === undefined ? "" : `${url?.includes("?") ? "&" : "?"}ref=${ref}`}`;
}
