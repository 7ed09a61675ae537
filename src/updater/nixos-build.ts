import { join } from "node:path";
import { z } from "zod";
import { flakeUrl } from "#rollout/flake-url.ts";
import { StorePath, type UpdateSpec } from "#rollout/spec.ts";
import { UpdateFailure } from "./failure.ts";
import { runOrFail } from "./nix.ts";
import { runOutside } from "./outside.ts";
import type { Ports } from "./ports.ts";

/** The path of the link that protects the last built system from the garbage collector until the system is activated. */
export const builtLink = (folder: string): string => join(folder, "system");

export interface SystemBuild {
  readonly ports: Ports;
  /** The folder of updates. */
  readonly folder: string;
  readonly target: UpdateSpec["target"];
  /** The node's name: the configuration to build if the target names none. */
  readonly hostName: string;
  readonly msLeft: () => number;
}

/**
 * Builds the NixOS system that a target names for this node, unless the store has it; returns its store path. The result depends on the
 * target alone: the flake and its inputs are pinned to commits, and the flake's settings for Nix are ignored.
 * @throws UpdateFailure of the kind build, with the end of the output of Nix; of the kind refused for a target that
 * pins nothing, or whose name is no name of a configuration
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
  await runOrFail(ports, ["sync"], { kind: "build", limitMs: build.msLeft() });
  return path.data;
}

function explainLock(error: unknown): never {
  if (!(error instanceof UpdateFailure) || !/lock file/.test(error.message)) throw error;
  const how = "the flake's flake.lock does not name a commit of every input: nix flake lock, and commit it";
  throw new UpdateFailure("refused", `${how}\n${error.message}`, { cause: error });
}

async function nix(build: SystemBuild, words: readonly string[]): Promise<string> {
  const { ports, msLeft } = build;
  const flags = ["--extra-experimental-features", "nix-command flakes", "--option", "accept-flake-config", "false"];
  return runOrFail({ run: (all) => runOutside(ports, all, msLeft) }, ["nix", ...flags, ...words], {
    kind: "build",
    limitMs: msLeft(),
  });
}

const LockedInput = z.object({
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
      z.object({ inputs: z.record(z.string(), z.unknown()).optional(), locked: LockedInput.optional() }),
    ),
  }),
});

/** Nix's arguments that override nixpkgs with another commit of the source that the flake's lock names. */
async function overrideNixpkgs(build: SystemBuild, url: string, rev: string): Promise<readonly string[]> {
  const metadata = await nix(build, ["flake", "metadata", "--json", "--no-write-lock-file", url]);
  const { root, nodes } = Metadata.parse(JSON.parse(metadata)).locks;
  const input = nodes[root]?.inputs?.["nixpkgs"];
  const locked = typeof input === "string" ? nodes[input]?.locked : undefined;
  const pinned = locked && flakeUrl(referenceOf(locked), rev);
  if (pinned === undefined)
    throw new UpdateFailure("refused", `the flake has no input “nixpkgs” of its own that nixpkgsRev could pin`);
  return ["--override-input", "nixpkgs", pinned];
}

function referenceOf({ type, owner, repo, url, ref, host }: z.infer<typeof LockedInput>): string {
  if (type !== "git") return `${type}:${owner}/${repo}${host === undefined ? "" : `?host=${host}`}`;
  return `git+${url}${ref === undefined ? "" : `${url?.includes("?") ? "&" : "?"}ref=${ref}`}`;
}
