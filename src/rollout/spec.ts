import { z } from "zod";
import { flakeUrl } from "./flake-url.ts";

/** A rollout's name, which is a part of keys and of file names on nodes. */
export const UpdateName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, "must be a name of letters, digits, “.”, “_” and “-”");
export const BundleSha256 = z.string().regex(/^[0-9a-f]{64}$/, "must be a SHA-256 in lower-case hex");
export const StorePath = z
  .string()
  .regex(/^\/nix\/store\/[0-9abcdfghijklmnpqrsvwxyz]{32}-[A-Za-z0-9+._?=-]{1,211}$/, "must be a store path");
/** Nix's own form of a NAR's hash, as `nix-store -q --hash` prints it. */
export const NarHash = z
  .string()
  .regex(/^sha256:[0-9abcdfghijklmnpqrsvwxyz]{52}$/, "must be sha256: and 52 characters of base 32");

const Text = z.string().min(1).max(1_000);
const CommitHash = z.string().regex(/^[0-9a-f]{40}$/, "must be a whole commit: 40 hex digits");
const Labels = z
  .array(z.string().regex(/^[^=]+=.*$/, "must be KEY=VALUE"))
  .max(64)
  .default([]);
const Seconds = z.int().min(0).max(604_800);

/** The version to bring: kcore's runtime by version or bundle, or a NixOS system by a flake and its commit. */
export const UpdateTarget = z.strictObject({
  version: Text.optional().describe("The version for people, and of kcore's runtime when there is no flake."),
  bundle: BundleSha256.optional().describe("SHA-256 of a bundle of kcore's runtime."),
  flakeRef: Text.optional().describe("The flake with the NixOS systems."),
  flakeRev: CommitHash.optional().describe("The flake's commit, 40 hex digits."),
  nixpkgsRev: CommitHash.optional().describe("Another commit of the flake's input nixpkgs."),
  systemProfile: Text.optional().describe("The nixosConfigurations.NAME of every node; else each node's host name."),
  allowDowngrade: z.boolean().default(false).describe("May an older version take the place of a newer one?"),
});

/** The nodes to update. Each given filter must hold, also beside `allNodes`. */
export const Selector = z.strictObject({
  allNodes: z.boolean().default(false).describe("All nodes, less those that other filters leave out."),
  nodeIds: z.array(Text).max(10_000).default([]).describe("Nodes by id or host name."),
  labels: Labels.describe("Labels, KEY=VALUE: a node has all of them."),
  datacenters: z.array(Text).max(1_000).default([]).describe("Datacenters: a node is in one of them."),
  controllersOnly: z.boolean().default(false).describe("Only nodes that run a controller."),
});

export const strategyTypes = ["canary", "one-at-a-time", "batch", "per-dc"] as const;
export const Strategy = z.strictObject({
  type: z
    .enum(strategyTypes)
    .default("one-at-a-time")
    .describe("The order of the nodes, and how many are updated at a time."),
  maxUnavailable: z.int().min(1).default(1).describe("The most selected nodes that may be down at a time."),
  batchSize: z.int().min(1).optional().describe("The nodes of a batch; maxUnavailable unless given."),
  canary: z
    .strictObject({
      nodeIds: z.array(Text).max(100).default([]).describe("The canaries, by id or host name; else the first node."),
      labels: Labels.describe("Labels that each canary has, too."),
      soakSeconds: Seconds.optional().describe(
        "Seconds after which the other nodes follow by themselves; unless given, an operator promotes.",
      ),
    })
    .optional()
    .describe("The canaries of the strategy canary."),
});

const hookFields = {
  state: Text.optional().describe("A state of the project that is applied to the node."),
  params: z.record(z.string(), z.unknown()).optional().describe("The state's parameters."),
  command: Text.optional().describe("A command on the bastion; KCORE_NODE, KCORE_NODE_ID and KCORE_ADDRESS are set."),
};

export const DrainSpec = z.strictObject({
  enabled: z.boolean().default(false).describe("Is the node emptied before it is touched?"),
  timeoutSeconds: Seconds.default(900).describe("The most seconds that the drain may take."),
  ...hookFields,
  after: z
    .strictObject(hookFields)
    .optional()
    .describe("A state or a command that lets work come back to the node at its end."),
});

export const Gate = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9 ._-]{0,62}$/, "must be a name of letters, digits, “.”, “_” and “-”")
    .describe("The gate's name in errors."),
  http: z
    .strictObject({
      url: z
        .string()
        .regex(/^https?:\/\/\S+$/, "must begin with http:// or https://")
        .max(2_000)
        .describe("Asked from the node itself."),
      status: z.int().min(100).max(599).default(200).describe("The status that the answer must have."),
    })
    .optional()
    .describe("An HTTP request from the node."),
  nodeCommand: Text.optional().describe("A command on the node, by sh as root; exit code 0 is success."),
  ...hookFields,
  withinSeconds: Seconds.default(60).describe("The most seconds until the gate holds."),
});
export type Gate = z.output<typeof Gate>;

const TimeOfDay = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, "must be a time of day, HH:MM");
export const weekdays = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
/** The time of day, in UTC, at which nodes may be started; past midnight if `to` is before `from`, a whole day if they are equal. */
export const MaintenanceWindow = z.strictObject({
  days: z
    .array(z.enum(weekdays))
    .min(1)
    .optional()
    .describe("Days on which the window begins; every day unless given."),
  from: TimeOfDay.describe("When the window begins, HH:MM in UTC."),
  to: TimeOfDay.describe("When the window ends, HH:MM in UTC."),
});

export const UpdateSpec = z.strictObject({
  target: UpdateTarget,
  selector: Selector,
  strategy: Strategy.prefault({}),
  drain: DrainSpec.prefault({}),
  activation: z
    .strictObject({
      mode: z.enum(["test", "switch", "boot", "auto"]).default("auto").describe("How the version comes into use."),
      rebootPolicy: z.enum(["never", "if-required", "always"]).default("if-required").describe("Whether nodes reboot."),
    })
    .prefault({})
    .describe("How the version comes into use, and whether nodes reboot."),
  approvalPolicy: z
    .enum(["manual", "auto-non-disruptive", "auto"])
    .default("manual")
    .describe("The approval that the update needs: manual or automatic."),
  rollback: z
    .strictObject({
      automatic: z.boolean().default(false).describe("Is everything taken back when a node fails?"),
      onHealthGateFailure: z.boolean().default(true).describe("Whether a failed gate takes everything back, too."),
    })
    .prefault({})
    .describe("The reaction to a failed node."),
  healthGates: z
    .array(Gate)
    .max(32)
    .default([])
    .describe("Conditions that must hold on each node besides kcore's own checks."),
  timeouts: z
    .strictObject({
      prepareSeconds: Seconds.default(3_600).describe("Time limit to fetch or build the version."),
      activateSeconds: Seconds.default(600).describe(
        "Time limit to bring the version into use and reach a controller again; after it the node goes back.",
      ),
      rebootSeconds: Seconds.default(900).describe("Time limit of a boot."),
      verifySeconds: Seconds.default(300).describe(
        "Time limit to become ready; the bastion's hooks have their own time limits.",
      ),
    })
    .prefault({})
    .describe("Time limits of a node's steps, in seconds."),
  window: MaintenanceWindow.optional().describe("When nodes may be started."),
});
export type UpdateSpec = z.output<typeof UpdateSpec>;

/** A bundle of kcore's runtime, as the bastion built it. */
export const Bundle = z.strictObject({
  /** SHA-256 of the compressed export, and its name on controllers. */
  sha256: BundleSha256,
  /** The size of the compressed export, bytes. */
  size: z.int().positive(),
  storePath: StorePath,
  narHash: NarHash,
  version: Text,
  /** As `uname -m` prints it. */
  arch: Text,
});
export type Bundle = z.output<typeof Bundle>;

/** Bytes that an unpacked bundle takes in the store: three times its size, as measured (docs/updates.md). */
export function unpackedSize({ size }: Pick<Bundle, "size">): number {
  return 3 * size;
}

/** A manifest as the bastion's CA signs it; nodes carry out no other manifest. */
export const UpdateStatement = z.strictObject({
  kind: z.literal("ClusterUpdate"),
  cluster: Text,
  name: UpdateName,
  spec: UpdateSpec,
  bundle: Bundle.optional(),
  /** ISO 8601 in UTC. */
  signedAt: z.iso.datetime(),
});
export type UpdateStatement = z.output<typeof UpdateStatement>;

/**
 * The bastion's signature for the controller, or the run over SSH, that owns an update in an epoch. If two owners were
 * signed for one epoch, each node obeys the first whose order reaches it.
 */
export const OwnershipStatement = z.strictObject({
  kind: z.literal("ClusterUpdateOwner"),
  cluster: Text,
  name: UpdateName,
  owner: z.string().min(1).max(253),
  epoch: z.int().min(1),
  /** ISO 8601 in UTC. */
  signedAt: z.iso.datetime(),
});
export type OwnershipStatement = z.output<typeof OwnershipStatement>;

/** A statement as it travels: the very text that was signed. */
export const SignedStatement = z.strictObject({
  statement: z.string().max(262_144),
  /** ECDSA over SHA-256, DER in base64. */
  signature: z.base64().max(1_024),
  /** PEM of the bastion's sub-CA that signed; the root issued it. */
  signer: z.string().max(16_384),
});
export type SignedStatement = z.output<typeof SignedStatement>;

/** The kind of an update: kcore's runtime, or a whole NixOS system. */
export function updateKindOf({ target }: Pick<UpdateSpec, "target">): "runtime" | "system" {
  return target.flakeRef === undefined ? "runtime" : "system";
}

/** The id of the target version, which nodes and controllers compute alike. */
export function targetIdOf({ spec, bundle }: Pick<UpdateStatement, "spec" | "bundle">): string {
  const { flakeRef, flakeRev = "", nixpkgsRev, systemProfile } = spec.target;
  if (flakeRef === undefined) return bundle?.storePath ?? "";
  const more = [nixpkgsRev && `nixpkgs=${nixpkgsRev}`, systemProfile && `profile=${systemProfile}`].filter(Boolean);
  return [flakeUrl(flakeRef, flakeRev) ?? `${flakeRef} ${flakeRev}`, ...more].join(" ");
}

/**
 * Whether a node has reached the target of an update. A version on trial has no generation, and ends with the next
 * boot: enough for mode test.
 */
export function isOnTarget(
  { activation }: Pick<UpdateSpec, "activation">,
  targetId: string,
  { id, generation }: { readonly id: string; readonly generation?: number | undefined },
): boolean {
  return id === targetId && (activation.mode === "test" || generation !== undefined);
}
