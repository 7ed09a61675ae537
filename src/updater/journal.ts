import { z } from "zod";
import { Order, orderSteps } from "#rollout/order.ts";
import { Failure, FencingToken, Report } from "#rollout/records.ts";
import { Statement } from "#rollout/spec.ts";

/** The version that a node runs, or ran. */
export const Present = Report.shape.present;
export type Present = z.infer<typeof Present>;

/** The same, with the boot default where it differs. */
export const Standing = Present.extend({ lasting: Present.optional() });
export type Standing = z.infer<typeof Standing>;

export function isSameStanding(one: Standing, other: Standing): boolean {
  return one.id === other.id && (one.lasting ?? one).id === (other.lasting ?? other).id;
}

/** The result of a preparation. */
export const Prepared = Report.pick({ targetGeneration: true, needsReboot: true, rebootReasons: true });
export type Prepared = z.infer<typeof Prepared>;

const Step = z.enum(orderSteps).exclude(["fence", "hold"]);
export type Step = z.infer<typeof Step>;

/** The side that must hear from the node before its activation holds. */
const Contact = Order.shape.contact.unwrap().default("controller");

/** A step that is under way. */
export const Doing = z.object({
  step: Step,
  statement: Statement,
  /** `held`: the activation holds and is being kept; `back`: it is being taken back. */
  stage: z.enum(["begun", "held", "back"]),
  /** The machine must boot before this step continues. */
  boots: z.boolean().default(false),
  /** The machine has booted in this stage. */
  hasBooted: z.boolean().default(false),
  /** The bastion has reached the node over a new connection since the step began. */
  isConfirmed: z.boolean().default(false),
  /** The standing to which a failure takes the node back. */
  before: Standing.optional(),
  contact: Contact,
  /** The agent's last heartbeat when the step began: a later one differs. */
  mark: z.string().default(""),
  /** The reason for which the node goes back. */
  failure: Failure.optional(),
  /** The step has taken `spent` ms in earlier boots, and runs in this boot since `since`, an uptime in ms. */
  time: z.object({ bootId: z.string(), since: z.number(), spent: z.number() }),
});
export type Doing = z.infer<typeof Doing>;

/** An accepted order that has not begun. */
const Next = z.object({ step: Step, statement: Statement, contact: Contact });
export type Next = z.infer<typeof Next>;

const Brings = z.enum(["runtime", "system"]);
/** kcore's runtime, or a NixOS system. */
export type Brings = z.infer<typeof Brings>;

const format = "kcore-updater/1";
const SignedAt = z.object({ runtime: z.iso.datetime().optional(), system: z.iso.datetime().optional() });

/** All that the updater knows, in one file, so that a crash leaves it as before a change or as after it. */
export const Journal = z.object({
  format: z.literal(format),
  fence: FencingToken.optional(),
  /** The last order of each other update: a late order begins nothing again. */
  past: z.array(FencingToken).default([]),
  /** The node's last report, which the agent sends. */
  report: Report.optional(),
  /** The kind of target of the present rollout. */
  brings: Brings.default("runtime"),
  doing: Doing.optional(),
  next: Next.optional(),
  /** The signing time of the last statement that failed here or was taken back: no statement up to it begins anew. */
  spent: SignedAt.default({}),
  /** The signing time of the last statement that held: an earlier statement does not replace it. */
  held: SignedAt.default({}),
  prepared: Prepared.optional(),
  /** The standing before the activation that held last. */
  previous: Standing.optional(),
  /** The update of that activation. */
  previousOf: z.object({ name: z.string(), brings: Brings }).optional(),
});
export type Journal = z.infer<typeof Journal>;

export function emptyJournal(): Journal {
  return { format, past: [], brings: "runtime", spent: {}, held: {} };
}

/** Whether the node takes orders of its present rollout alone. A preparation that has not begun yet gives way to any order. */
export function isBusy({ doing, next }: Pick<Journal, "doing" | "next">): boolean {
  return doing !== undefined || (next !== undefined && next.step !== "prepare");
}

/** Reads JSON; undefined: the text does not fit the schema. */
export function parseAs<Schema extends z.ZodType>(schema: Schema, text: string): z.output<Schema> | undefined {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
