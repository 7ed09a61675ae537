import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { durableFile } from "#base/durable-file.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { Order } from "#rollout/order.ts";
import { FailureRecord, FencingToken, Report } from "#rollout/records.ts";
import { updateKindOf, UpdateStatement } from "#rollout/spec.ts";
import { updateFiles } from "./files.ts";
import type { UpdaterParts } from "./ports.ts";
import { BootState, TargetKind, isSameState, Preparation, NodeVersion, UpdateStep } from "./strategy.ts";

/** The side that must hear from the node before its activation holds. */
const Contact = Order.shape.contact.unwrap().default("controller");

/** A step that is under way. */
export const StepUnderWay = z.object({
  step: UpdateStep,
  statement: UpdateStatement,
  /** `held`: the activation holds and is being kept; `back`: it is being taken back. */
  stage: z.enum(["begun", "held", "back"]),
  /** The step continues only after a boot. */
  boots: z.boolean().default(false),
  /** The machine has booted during this stage. */
  hasBooted: z.boolean().default(false),
  /** The bastion has reached the node over a new connection since the step began. */
  isConfirmed: z.boolean().default(false),
  /** The state to which a failure takes the node back. */
  before: BootState.optional(),
  contact: Contact,
  /** The time of the agent's last heartbeat before the step began. */
  mark: z.string().default(""),
  /** The failure because of which the node goes back. */
  failure: FailureRecord.optional(),
  /** The step has taken `spent` ms in earlier boots, and runs in this boot since `since`, an uptime in ms. */
  time: z.object({ bootId: z.string(), since: z.number(), spent: z.number() }),
});
export type StepUnderWay = z.infer<typeof StepUnderWay>;

/** An accepted order that has not begun. */
const NextStep = z.object({ step: UpdateStep, statement: UpdateStatement, contact: Contact });
export type NextStep = z.infer<typeof NextStep>;

const format = "kcore-updater/1";
const SignedAt = z.object({ runtime: z.iso.datetime().optional(), system: z.iso.datetime().optional() });

/** All that the updater knows, in one file, so that a crash leaves it as before a change or as after it. */
export const Journal = z.object({
  format: z.literal(format),
  fence: FencingToken.optional(),
  /** The last token of each other update, so that a late order begins nothing again. */
  past: z.array(FencingToken).default([]),
  /** The node's last report, which the agent sends. */
  report: Report.optional(),
  /** The kind of target of the present rollout. */
  brings: TargetKind.default("runtime"),
  doing: StepUnderWay.optional(),
  next: NextStep.optional(),
  /** The signing time of the last statement that failed here or was taken back: no statement up to it begins anew. */
  spent: SignedAt.default({}),
  /** The signing time of the last statement that held: an earlier statement does not replace it. */
  held: SignedAt.default({}),
  prepared: Preparation.optional(),
  /** The state before the activation that held last. */
  previous: BootState.optional(),
  /** The update of the activation that `previous` is about. */
  previousOf: z.object({ name: z.string(), brings: TargetKind }).optional(),
});
export type Journal = z.infer<typeof Journal>;

export function emptyJournal(): Journal {
  return { format, past: [], brings: "runtime", spent: {}, held: {} };
}

/** Whether the node takes orders of its present rollout alone. Any order may replace a preparation that has not begun. */
export function isBoundToRollout({ doing, next }: Pick<Journal, "doing" | "next">): boolean {
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

/** The orders that the updater has accepted, with its report. */
export type Accepted = Pick<Journal, "fence" | "past" | "report">;

/** Reads the part of the updater's journal that the agent needs; undefined if the journal is missing or unreadable. */
export async function readAccepted(folder: string): Promise<Accepted | undefined> {
  const text = await readFile(join(folder, updateFiles.journal), "utf8").catch(() => "");
  return parseAs(Journal.pick({ fence: true, past: true, report: true }), text);
}

/** The part of a report that a step decides; the journal adds the rest. */
export type StepOutcome = Pick<Report, "state"> & Partial<Pick<Report, "failure" | "waitsFor">>;

/** Milliseconds between two saves of a step's time. Each boot counts for as much, so that a series of boots reaches the limit. */
const chargeMs = 10_000;

function openJournal(path: string, { ports }: Pick<UpdaterParts, "ports">) {
  const parse = (text: string): Journal => Journal.parse(JSON.parse(text));
  // runtime.updated reads the report by the keys around it, in one line (src/engine/step/fragments/updater.ts).
  const print = ({ format, fence, past, report, brings, ...rest }: Journal): string =>
    `${JSON.stringify({ format, fence, past, report, brings, ...rest })}\n`;
  return durableFile(path, { parse, print }, emptyJournal(), ports);
}

/** Keeps the updater's journal on the disk, with the report in it. */
export class UpdaterJournal {
  readonly #parts: UpdaterParts;
  readonly #path: string;
  readonly #db: ReturnType<typeof openJournal>;

  constructor(parts: UpdaterParts) {
    this.#parts = parts;
    this.#path = join(parts.folder, updateFiles.journal);
    this.#db = openJournal(this.#path, parts);
  }

  get data(): Journal {
    return this.#db.data;
  }

  /** Reads the journal of the process before this one. A journal that cannot be read, which no crash leaves behind, is put aside. */
  async open(): Promise<void> {
    const { ports, log } = this.#parts;
    try {
      await this.#db.read();
    } catch (error) {
      if (!(error instanceof SyntaxError || error instanceof z.ZodError)) throw error;
      log.warn("the journal cannot be read, and is put aside", { path: this.#path });
      await ports.move(this.#path, `${this.#path}.damaged`);
    }
    const { doing } = this.data;
    if (!doing) return;
    log.info("continues a step that was cut off", { step: doing.step, stage: doing.stage });
    const bootId = await ports.bootId();
    if (bootId !== doing.time.bootId) await this.#afterBoot(doing, bootId);
  }

  /**
   * After a boot that the updater ordered, the step's time begins anew at the kernel's start; any other boot counts as
   * chargeMs of it.
   */
  async #afterBoot(doing: StepUnderWay, bootId: string): Promise<void> {
    const { ports } = this.#parts;
    if (doing.boots) {
      doing.boots = false;
      doing.hasBooted = true;
      doing.time = { bootId, since: 0, spent: 0 };
    } else doing.time = { bootId, since: ports.uptime(), spent: doing.time.spent + chargeMs };
    // Any boot ends a trial, and starts the boot default.
    doing.before = doing.before?.lasting ?? doing.before;
    // If the journal cannot be written, each later start would allow the step its whole limit again, so it fails now.
    if (!(await this.saveIfPossible()) && doing.stage === "begun") doing.time.spent = Number.MAX_SAFE_INTEGER;
  }

  /** The node's present state, for the kind of target of the present rollout. */
  present(): Promise<BootState> {
    return this.#parts.present(this.data.brings);
  }

  /** The state to which the present update goes back, unless another update has held since. */
  get rollbackTarget(): BootState | undefined {
    const { previous, previousOf: of, fence, brings } = this.data;
    return of?.name === fence?.name && of?.brings === brings ? previous : undefined;
  }

  set rollbackTarget(previous: BootState) {
    const { data } = this;
    const { doing, brings } = data;
    if (doing) Object.assign(data, { previous, previousOf: { name: doing.statement.name, brings } });
  }

  /** Whether this rollout has activated its target already, maybe for a former owner. A second activation would be a needless risk. */
  get hasHeld(): boolean {
    const { fence, report } = this.data;
    const { name, generation } = report?.fence ?? {};
    return report?.state === "activated" && name === fence?.name && generation === fence?.generation;
  }

  /** The milliseconds that the present step has left of a limit. */
  msLeft(limit: number): number {
    const { time } = this.data.doing ?? {};
    return time ? limit - time.spent - (this.#parts.ports.uptime() - time.since) : limit;
  }

  /** Saves the time that the present step has taken so far, if the last save is chargeMs old. */
  async charge(): Promise<void> {
    const { ports } = this.#parts;
    const { doing } = this.data;
    const passed = doing ? ports.uptime() - doing.time.since : 0;
    if (!doing || passed < chargeMs) return;
    doing.time = { ...doing.time, since: ports.uptime(), spent: doing.time.spent + passed };
    await this.save();
  }

  /** Puts the step of an accepted order under way; the caller saves it with its first report. */
  async begin({ step, statement, contact }: NextStep): Promise<StepUnderWay> {
    const { ports } = this.#parts;
    const time = { bootId: await ports.bootId(), since: ports.uptime(), spent: 0 };
    const fresh = { stage: "begun", boots: false, hasBooted: false, isConfirmed: false, mark: "" } as const;
    // While the order waited, a step of the other kind may have been under way.
    this.data.brings = updateKindOf(statement.spec);
    delete this.data.next;
    this.data.doing = { step, statement, contact, ...fresh, time };
    return this.data.doing;
  }

  /** Ends the present step. A failure is not reported while a later order waits: the owner could take it for the later order's. */
  async end(outcome: StepOutcome): Promise<void> {
    const { doing, brings, spent, next } = this.data;
    // A controller that gives the same statement again could otherwise make this node alternate for ever.
    if (doing && (outcome.state === "failed" || outcome.state === "rolled_back"))
      spent[brings] = latest(spent[brings], doing.statement.signedAt);
    delete this.data.doing;
    if (next && outcome.state === "failed") await this.save();
    else await this.report(outcome);
  }

  /** Makes the node's report, and saves it together with all changes of the journal in one write. */
  async report(outcome: StepOutcome): Promise<void> {
    const { ports, log } = this.#parts;
    const { data, rollbackTarget } = this;
    const { fence, prepared, doing, report } = data;
    if (!fence) return;
    const now = await this.present();
    // A node that is in its rollback target already has nothing to go back to.
    const isBack = rollbackTarget !== undefined && isSameState(now, rollbackTarget);
    const before = doing?.before ?? (isBack ? undefined : rollbackTarget);
    data.report = {
      epoch: Math.max((report?.epoch ?? 0) + 1, ports.clock()),
      fence,
      ...outcome,
      present: NodeVersion.parse(now),
      ...omitUndefined({ lasting: now.lasting }),
      ...(before && { previous: NodeVersion.parse(before) }),
      ...prepared,
      at: report?.state === outcome.state ? report.at : ports.clock(),
    };
    log.info("says", { ...data.report });
    await this.save();
  }

  async save(): Promise<void> {
    await this.#db.write();
  }

  /** Saves, and returns whether the disk took it: a full disk must not keep the node from going back. */
  async saveIfPossible(): Promise<boolean> {
    try {
      await this.save();
      return true;
    } catch (error) {
      this.#parts.log.warn("the folder of updates takes nothing", { error: errorMessage(error) });
      return false;
    }
  }
}

export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function latest(a: string | undefined, b: string): string {
  return a !== undefined && Date.parse(a) > Date.parse(b) ? a : b;
}
