import { z } from "zod";
import { Tags } from "#engine/states/step-source.ts";

const id = z.string().regex(/^[A-Za-z][A-Za-z0-9_-]*(?:@\d+)?$/, "must be letters, digits, - and _, a letter first");

const common = {
  id: id.describe(
    "Letters, digits, “-” and “_”, a letter first; unique in the file. “@2” behind it: its wave, in a file without waves.",
  ),
  title: z.string().optional().describe("The title in views; the id unless given."),
  when: z.unknown().optional().describe("True or false; for each node if the stage has nodes."),
  forEach: z
    .unknown()
    .optional()
    .describe("A list known before the run: the stage is there once for each item, which it sees as item."),
  register: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be letters, digits and _")
    .optional()
    .describe("stages.NAME gives the stage's outputs; the id unless given."),
  with: z.record(z.string(), z.unknown()).optional().describe("Parameters of the states, or arguments of the action."),
  batch: z.unknown().optional().describe("The number of nodes (or a share, 25%) in each batch."),
  concurrency: z.unknown().optional().describe("The most nodes at a time."),
  maxFailures: z.unknown().optional().describe("A number or share of nodes that may fail or be unreachable."),
  maxUnavailable: z
    .unknown()
    .optional()
    .describe("The most nodes (or a share) at a time, less those that failed or are unreachable."),
  timeout: z.unknown().optional().describe("90s, 10m; an action without one may take an hour."),
  order: z
    .enum(["file", "reverse", "name"])
    .optional()
    .describe("The order of the nodes: as in the roster unless given."),
  once: z.boolean().optional().describe("With waves: before the first or after the last one, for all nodes at once."),
  onFailure: z.array(z.unknown()).optional().describe("Stages that follow when this one failed."),
  tags: Tags.optional().describe("A word or a list of words, by which --tags chooses the whole stage."),
};
const target = z.union([z.string(), z.array(z.string()).min(1)]);
const name = z.string().min(1);

/** A stage that applies states. */
export const ApplyShape = z.strictObject({
  ...common,
  on: target.optional().describe("The nodes: a target expression, or a list of them."),
  apply: z.union([name, z.array(name).min(1)]).describe("A state, or a list of states."),
  with: z
    .union([z.record(z.string(), z.unknown()), z.string()])
    .optional()
    .describe("Parameters of the states: a map, or one expression that gives it."),
  reconnect: z
    .boolean()
    .optional()
    .describe("The bastion connects to the nodes anew first, and so proves that they can be reached."),
});
/** A stage that runs an action; every other key is an argument of the action. */
export const RunShape = z.strictObject({
  ...common,
  run: name.describe("The action; its arguments stand beside it, or under “with”."),
  each: target
    .optional()
    .describe("The action runs once for each of these nodes; else once, and all nodes wait for it."),
  afterEach: z.boolean().optional().describe("With waves: at its place, and again after each wave."),
  severity: z
    .enum(["error", "warning"])
    .optional()
    .describe(
      "Makes the action a check: it only looks, as in a dry run. Further checks follow its failure; with “each”, none on that node.",
    ),
  remedy: z.string().min(1).optional().describe("Of a check: the command, or the work, that mends its failure."),
});

/** Every key of a stage. A test compares docs/orchestrations.md with them. */
export const STAGE_KEYS: readonly string[] = Object.keys({ ...ApplyShape.shape, ...RunShape.shape });

export const RUN_KEYS: readonly string[] = Object.keys(RunShape.shape);
