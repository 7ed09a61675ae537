import { join } from "node:path";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { Report } from "#rollout/records.ts";
import { names } from "./files.ts";
import { emptyJournal, isSameStanding, Journal, parseAs, Present, type Doing, type Standing } from "./journal.ts";
import type { UpdaterParts } from "./ports.ts";

/** The part of a report that a step decides; the journal knows the rest. */
export type Word = Pick<Report, "state"> & Partial<Pick<Report, "failure" | "waitsFor">>;

/** Ms between two notes of a step's time; each boot is charged as much, so that no series of boots goes on for ever. */
const chargeMs = 10_000;

/** Keeps the updater's journal on the disk, with the report in it. */
export class UpdateJournal {
  readonly #parts: UpdaterParts;
  readonly #path: string;
  data = emptyJournal();

  constructor(parts: UpdaterParts) {
    this.#parts = parts;
    this.#path = join(parts.folder, names.journal);
  }

  /** Reads the journal of the process before this one. A journal that cannot be read, which no crash leaves behind, is put aside. */
  async open(): Promise<void> {
    const { ports, log } = this.#parts;
    const text = await ports.read(this.#path);
    const journal = text === undefined ? emptyJournal() : parseAs(Journal, text);
    if (journal) this.data = journal;
    else {
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
   * A boot that the updater ordered begins a new time, from the kernel's start; any other boot uses the present time.
   */
  async #afterBoot(doing: Doing, bootId: string): Promise<void> {
    const { ports } = this.#parts;
    if (doing.boots) {
      doing.boots = false;
      doing.hasBooted = true;
      doing.time = { bootId, since: 0, spent: 0 };
    } else doing.time = { bootId, since: ports.uptime(), spent: doing.time.spent + chargeMs };
    // Any boot ends a trial, and brings the boot default.
    doing.before = doing.before?.lasting ?? doing.before;
    // A journal that cannot be written would give each later start all the time anew.
    if (!(await this.saveIfPossible()) && doing.stage === "begun") doing.time.spent = Number.MAX_SAFE_INTEGER;
  }

  /** The standing to which the present update goes back, unless another update has held since. */
  get rollbackTarget(): Standing | undefined {
    const { previous, previousOf: of, fence, brings } = this.data;
    return of?.name === fence?.name && of?.brings === brings ? previous : undefined;
  }

  set rollbackTarget(previous: Standing) {
    const { data } = this;
    const { doing, brings } = data;
    if (doing) Object.assign(data, { previous, previousOf: { name: doing.statement.name, brings } });
  }

  /** Ms that are left of a limit for the present step. */
  left(limit: number): number {
    const { time } = this.data.doing ?? {};
    return time ? limit - time.spent - (this.#parts.ports.uptime() - time.since) : limit;
  }

  /** Keeps the time that the present step has taken so far. */
  async charge(): Promise<void> {
    const { ports } = this.#parts;
    const { doing } = this.data;
    const passed = doing ? ports.uptime() - doing.time.since : 0;
    if (!doing || passed < chargeMs) return;
    doing.time = { ...doing.time, since: ports.uptime(), spent: doing.time.spent + passed };
    await this.save();
  }

  /** Reports, and saves the report with all that led to it in one write. */
  async say(word: Word): Promise<void> {
    const { ports, log, present } = this.#parts;
    const { data, rollbackTarget } = this;
    const { fence, brings, prepared, doing, report } = data;
    if (!fence) return;
    const now = await present(brings);
    // A node that stands there already has nothing to go back to.
    const isBack = rollbackTarget !== undefined && isSameStanding(now, rollbackTarget);
    const before = doing?.before ?? (isBack ? undefined : rollbackTarget);
    data.report = {
      epoch: Math.max((report?.epoch ?? 0) + 1, ports.clock()),
      fence,
      ...word,
      present: Present.parse(now),
      ...omitUndefined({ lasting: now.lasting }),
      ...(before && { previous: Present.parse(before) }),
      ...prepared,
      at: report?.state === word.state ? report.at : ports.clock(),
    };
    log.info("says", { ...data.report });
    await this.save();
  }

  async save(): Promise<void> {
    // runtime.updated reads the report by the keys around it (src/engine/step/fragments/updater.ts).
    const { format, fence, past, report, brings, ...rest } = this.data;
    const text = JSON.stringify({ format, fence, past, report, brings, ...rest });
    await this.#parts.ports.replace(this.#path, `${text}\n`);
  }

  /** Saves unless the disk refuses, which must not keep the node from going back. */
  async saveIfPossible(): Promise<boolean> {
    try {
      await this.save();
      return true;
    } catch (error) {
      this.#parts.log.warn("the folder of updates takes nothing", { error: messageOf(error) });
      return false;
    }
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
