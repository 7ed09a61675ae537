import { z } from "zod";
import { Order, orderSteps } from "#rollout/order.ts";
import { Failure, Fence, Report } from "#rollout/records.ts";
import { Statement } from "#rollout/spec.ts";

/** What a node runs, or ran. */
export const Present = Report.shape.present;
export type Present = z.infer<typeof Present>;

/** The same, and what the next boot begins with, or began with, where that is another one. */
export const Standing = Present.extend({ lasting: Present.optional() });
export type Standing = z.infer<typeof Standing>;

export function isSameStanding(one: Standing, other: Standing): boolean {
  return one.id === other.id && (one.lasting ?? one).id === (other.lasting ?? other).id;
}

/** What a preparation came to. */
export const Prepared = Report.pick({ targetGeneration: true, needsReboot: true, rebootReasons: true });
export type Prepared = z.infer<typeof Prepared>;

const Step = z.enum(orderSteps).exclude(["fence"]);
export type Step = z.infer<typeof Step>;

/** A step that is under way. */
export const Doing = z.object({
  step: Step,
  statement: Statement,
  /** `held`: nothing takes it back but that it cannot be kept; `back`: nothing can bring it forward any more. */
  stage: z.enum(["begun", "held", "back"]),
  /** The machine is to be booted before this goes on. */
  boots: z.boolean().default(false),
  /** It has been, in this stage. */
  hasBooted: z.boolean().default(false),
  /** What the node goes back to. */
  before: Standing.optional(),
  /** Who has to hear from the node before its activation holds. */
  contact: Order.shape.contact.unwrap().default("controller"),
  /** What the agent had said when this began: a word that is not that one is a new one. */
  mark: z.string().default(""),
  /** Why it goes back. */
  failure: Failure.optional(),
  /** How long it has been at it: `spent` in earlier boots, and since `since`, an uptime in ms, in this one. */
  time: z.object({ bootId: z.string(), since: z.number(), spent: z.number() }),
});
export type Doing = z.infer<typeof Doing>;

const Brings = z.enum(["runtime", "system"]);
/** kcore's runtime, or a NixOS system. */
export type Brings = z.infer<typeof Brings>;

const format = "kcore-updater/1";

/** All that the updater knows, in one file: whatever happens, it is what it was before a step of its or after. */
export const Journal = z.object({
  format: z.literal(format),
  fence: Fence.optional(),
  /** The last order of each other update, so that none of them begins again when it comes late. */
  past: z.array(Fence).default([]),
  doing: Doing.optional(),
  /** The last order, when it is not carried out yet. */
  next: z
    .object({ step: Step, statement: Statement, ...Order.pick({ problem: true, contact: true }).shape })
    .optional(),
  /** What the present rollout brings. */
  brings: Brings.default("runtime"),
  /** When the statement was signed that failed here, or was taken back, last: nothing begins anew by that word. */
  spent: z.object({ runtime: z.iso.datetime().optional(), system: z.iso.datetime().optional() }).default({}),
  /** When the bastion signed what this node took last of each: what was signed before does not take its place. */
  held: z.object({ runtime: z.iso.datetime().optional(), system: z.iso.datetime().optional() }).default({}),
  prepared: Prepared.optional(),
  /** What ran before the activation that held last. */
  previous: Standing.optional(),
  /** Whose activation that was. A journal of before this was kept has `previous` of none but its present rollout. */
  previousOf: z.object({ name: z.string(), brings: Brings }).optional(),
  report: Report.optional(),
});
export type Journal = z.infer<typeof Journal>;

export function emptyJournal(): Journal {
  return { format, past: [], brings: "runtime", spent: {}, held: {} };
}
