import { z } from "zod";
import { DrainSpec, Selector, Strategy, UpdateTarget, UpdateName, UpdateSpec } from "#rollout/spec.ts";
import { inAnyCase, plainWord } from "./spellings.ts";

export const Text = z.string().min(1);

/** The keys that every manifest begins with. */
export const envelope = {
  apiVersion: Text.optional().describe("Ignored."),
  kind: Text.describe("The kind: Cluster, NodeInstall, Node, DiskLayout, ClusterUpdate, Image, Network or VM."),
};

/** The forerunner's files write `""` for an absent value. */
function orEmpty<Schema extends z.ZodType<unknown, string | undefined>>(schema: Schema) {
  return z
    .string()
    .transform((text) => (text === "" ? undefined : text))
    .pipe(schema);
}

/** The forerunner's files write `0` for an absent number. */
function orZero<Schema extends z.ZodType<number>>(schema: Schema) {
  return schema.transform((number) => (number === 0 ? undefined : number));
}

/** One of these words in any spelling (`one_at_a_time`, `Batch`), or `""`. */
function word<Words extends z.ZodEnum<Readonly<Record<string, string>>>>(schema: Words) {
  const words = schema.options;
  return z
    .string()
    .transform((text) => words.find((one) => plainWord(one) === plainWord(text)) ?? (text === "" ? undefined : text))
    .pipe(schema.optional())
    .meta({ anyOf: [{ enum: words }, { maxLength: 0 }, ...words.map((one) => ({ pattern: inAnyCase(one) }))] })
    .optional();
}

const Commit = orEmpty(UpdateTarget.shape.flakeRev).meta({ pattern: "^([0-9a-f]{40})?$" });
const Count = orZero(z.int().refine((count) => count >= 0, "must be at least 1"))
  .meta({ minimum: 0 })
  .optional();
const Timeout = orZero(DrainSpec.shape.timeoutSeconds.unwrap()).optional();

const Labels = z
  .union([
    Selector.shape.labels.unwrap(),
    z
      .record(z.string().regex(/^[^=]+$/, "must be a key without “=”"), z.string())
      .transform((labels) => Object.entries(labels).map(([key, value]) => `${key}=${value}`))
      .pipe(Selector.shape.labels.unwrap()),
  ])
  .default([]);

const drainPolicy = {
  enabled: z.boolean().optional().describe("Whether the node is emptied before its update."),
  timeoutSeconds: Timeout.describe("Seconds that emptying a node may take; 0: not said."),
};
const activation = UpdateSpec.shape.activation.unwrap().shape;
const rollback = UpdateSpec.shape.rollback.unwrap();

/**
 * `kind: ClusterUpdate` in kcore's keys, and in those of the forerunner's tool, page and design; `updateSpecOf` makes
 * one spec of all. Only `UpdateSpec` has the defaults.
 */
export const ClusterUpdateSchema = z.strictObject({
  ...envelope,
  metadata: z
    .strictObject({
      name: UpdateName.describe("The update's name: at most 63 letters, digits, “.”, “_” and “-”."),
    })
    .describe("The name: { name: release-1 }."),
  spec: z
    .strictObject({
      target: z
        .strictObject({
          ...UpdateTarget.shape,
          version: orEmpty(UpdateTarget.shape.version)
            .optional()
            .describe("The version for people, and of kcore's runtime when there is no flake."),
          bundle: orEmpty(UpdateTarget.shape.bundle)
            .meta({ pattern: "^([0-9a-f]{64})?$" })
            .optional()
            .describe("SHA-256 of a bundle of kcore's runtime: 64 hex digits in lower case."),
          flakeRef: orEmpty(UpdateTarget.shape.flakeRef).optional().describe("The flake with the NixOS systems."),
          flakeRev: Commit.optional().describe("The flake's commit, as git rev-parse HEAD prints it: 40 hex digits."),
          nixpkgsRev: Commit.optional().describe("Another commit of the flake's input nixpkgs: 40 hex digits."),
          systemProfile: orEmpty(UpdateTarget.shape.systemProfile)
            .optional()
            .describe("The nixosConfigurations.NAME of every node; else each node's host name."),
        })
        .describe(
          "The version that nodes shall run: flakeRef and flakeRev of NixOS systems, or kcore by its version or bundle.",
        ),
      selector: z
        .strictObject({
          ...Selector.shape,
          labels: Labels.describe("KEY=VALUE in a list, or a map; all of them must match."),
        })
        .describe("The nodes: each given key narrows. { allNodes: true }, { nodeIds: [n1, n2] }, …"),
      strategy: z
        .strictObject({
          type: word(Strategy.shape.type.unwrap()).describe(
            "The order of the nodes, and how many are updated at a time.",
          ),
          strategyType: word(Strategy.shape.type.unwrap()).describe("The same as type."),
          maxUnavailable: Count.describe("The most selected nodes that may be down at a time; 0: not said."),
          batchSize: Count.describe("The nodes of a batch; maxUnavailable unless given, or 0."),
          canary: z
            .strictObject({
              ...Strategy.shape.canary.unwrap().shape,
              labels: Labels.describe("Canaries by labels: all nodes that have all of them."),
            })
            .optional()
            .describe("The canaries of the strategy canary."),
        })
        .prefault({})
        .describe("The order of the nodes, and how many are updated at a time."),
      drain: z
        .strictObject({ ...DrainSpec.shape, ...drainPolicy })
        .optional()
        .describe("Whether and how nodes are emptied first."),
      drainPolicy: z.strictObject(drainPolicy).optional().describe("The same as drain, in other words."),
      drainVms: z.boolean().optional().describe("The same as enabled of drain."),
      drainTimeoutSeconds: Timeout.describe("The same as timeoutSeconds of drain; 0: not said."),
      activation: z
        .strictObject({
          mode: word(activation.mode.unwrap()).describe("How the version comes into use."),
          rebootPolicy: word(activation.rebootPolicy.unwrap()).describe("Whether nodes reboot."),
        })
        .prefault({})
        .describe("How the version comes into use."),
      approvalPolicy: word(UpdateSpec.shape.approvalPolicy.unwrap()).describe(
        "The approval that the update needs; manual unless given.",
      ),
      rollback: rollback.optional().describe("The reaction to a failed node."),
      rollbackPolicy: rollback.optional().describe("The same as rollback."),
      automaticRollback: z.boolean().optional().describe("The same as automatic of rollback."),
      healthGates: UpdateSpec.shape.healthGates,
      timeouts: UpdateSpec.shape.timeouts,
      window: UpdateSpec.shape.window,
    })
    .describe("The version, the nodes and the way: target, selector, strategy, …"),
});

/** The spec of a manifest in any dialect. */
export type WrittenUpdate = z.output<typeof ClusterUpdateSchema>["spec"];
