import { join } from "node:path";
import { judgeOrder, rememberOrder, type Remembered } from "#rollout/node-fence.ts";
import { Order, verifyManifest, verifyOwner } from "#rollout/order.ts";
import { defined } from "#optional/defined.ts";
import { Report, type Fence } from "#rollout/records.ts";
import { bringsOf, type SignedStatement, type Statement } from "#rollout/spec.ts";
import { UpdateFailure } from "./failure.ts";
import { names } from "./files.ts";
import { emptyJournal, isSameStanding, Present, type Brings, type Doing, type Standing } from "./journal.ts";
import type { Log, Ports } from "./ports.ts";
import { parseAs, readJournal } from "./read-journal.ts";

export interface DeskParts {
  /** The folder of updates. */
  readonly folder: string;
  readonly ports: Ports;
  readonly log: Log;
  /** Gives what a statement says once this cluster's bastion has signed it. @throws KcoreError */
  readonly verify: (signed: SignedStatement) => Promise<unknown>;
  /** What the node runs of that, whatever it is to run. */
  readonly present: (brings: Brings) => Promise<Standing>;
}

/** What the node says of a step; the rest of a report is what the journal knows. */
export type Word = Pick<Report, "state"> & Partial<Pick<Report, "failure" | "waitsFor">>;

const tickMs = 1_000;
/** So often what was spent is kept, and so much at least is charged for each boot: no row of boots goes on for ever. */
const chargeMs = 10_000;

/** What the updater knows and says: its journal, the orders that it takes and the reports that it gives. */
export class Desk {
  readonly #parts: DeskParts;
  journal = emptyJournal();
  /** Of the last word that was given. */
  #count = 0;
  /** The agent's copy is the last word of the journal, or a later one. */
  #isShown = true;

  constructor(parts: DeskParts) {
    this.#parts = parts;
  }

  #path(name: keyof typeof names): string {
    return join(this.#parts.folder, names[name]);
  }

  /** Reads what the process before this one left; the agent's copy of the report is put right. */
  async open(): Promise<void> {
    const { ports, log } = this.#parts;
    const { journal, isDamaged } = await readJournal(this.#parts);
    this.journal = journal;
    if (isDamaged) await this.save();
    const { doing, report } = this.journal;
    if (doing) {
      log.info("goes on with what was cut off", { step: doing.step, stage: doing.stage });
      const bootId = await ports.bootId();
      if (bootId !== doing.time.bootId) await this.#afterBoot(doing, bootId);
    }
    const shown = parseAs(Report, (await ports.read(this.#path("report"))) ?? "")?.epoch ?? 0;
    this.#count = shown;
    // A later one answers what nobody signed: the older one would be taken for something new.
    this.#isShown = !report || shown >= report.epoch;
    await this.#attempt(this.#show());
  }

  async #show(): Promise<void> {
    const { report } = this.journal;
    if (!this.#isShown && report) await this.#give(report);
  }

  async #give(report: Report): Promise<void> {
    await this.#parts.ports.replace(this.#path("report"), `${JSON.stringify(report)}\n`);
    this.#isShown = true;
  }

  /** A boot that was asked for begins a new time, from the kernel's start; any other one uses the present one up. */
  async #afterBoot(doing: Doing, bootId: string): Promise<void> {
    const { ports } = this.#parts;
    if (doing.boots) {
      doing.boots = false;
      doing.hasBooted = true;
      doing.time = { bootId, since: 0, spent: 0 };
    } else doing.time = { bootId, since: ports.uptime(), spent: doing.time.spent + chargeMs };
    // What was only tried is over with any boot, and what waited for one has come.
    doing.before = doing.before?.lasting ?? doing.before;
    // Each start would else be the first one behind the boot, and have all the time anew.
    if (!(await this.saveIfPossible()) && doing.stage === "begun") doing.time.spent = Number.MAX_SAFE_INTEGER;
  }

  /** Nothing is left to be done: systemd need not start it again. */
  async close(): Promise<void> {
    await this.#show();
    await this.#parts.ports.remove(this.#path("unfinished"));
  }

  /** Takes what lies in the inbox. Done while something else is waited for, so that an owner is answered at once. */
  async takeOrders(): Promise<void> {
    const { ports, log } = this.#parts;
    for (;;) {
      let text = await ports.read(this.#path("taken"));
      if (text === undefined && (await ports.move(this.#path("inbox"), this.#path("taken"))))
        text = await ports.read(this.#path("taken"));
      if (text === undefined) return;
      const order = parseAs(Order, text);
      if (order) await this.#judge(order);
      else log.warn("the inbox held no order");
      await ports.remove(this.#path("taken"));
    }
  }

  async #judge(order: Order): Promise<void> {
    const { log, verify } = this.#parts;
    const { fence, step, problem, contact } = order;
    const { doing, next } = this.journal;
    const isBusy = (doing ?? next) !== undefined;
    const verdict = judgeOrder(this.#remembered(isBusy), fence);
    if (!verdict.accept) {
      if (verdict.why === "refused") log.warn("refused an order", { why: verdict.message, order: fence });
      return;
    }
    try {
      await verifyOwner(order, verify);
    } catch (error) {
      // Not answered: a report that names an owner confirms it.
      log.warn("refused an order", { why: messageOf(error), order: fence });
      return;
    }
    let statement: Statement;
    try {
      statement = await verifyManifest(order, verify);
    } catch (error) {
      const why = messageOf(error);
      log.warn("refused an order", { why, order: fence });
      // What is under way was signed; a word that is not does not touch it.
      if (isBusy) return;
      // Nobody signed it, so it is answered and forgotten: it must not fence out whoever comes with the bastion's word.
      return this.#sayAside(fence, { state: "failed", failure: new UpdateFailure("refused", why).failure });
    }
    log.info("takes an order", { step, ...fence });
    if (!doing) this.journal.brings = bringsOf(statement.spec);
    const isSame = this.#remember(fence);
    if (step === "fence" || (doing?.step === step && isEqual(doing.statement, statement))) delete this.journal.next;
    else this.journal.next = { step, statement, ...defined({ problem, contact }) };
    // Without a step of its own the word about what was done stays, under the present owner's name.
    const { report } = this.journal;
    if (this.journal.next && !doing) return this.save();
    await this.say(
      report && isSame
        ? { state: report.state, ...defined({ failure: report.failure, waitsFor: report.waitsFor }) }
        : { state: "fenced" },
    );
  }

  #remembered(isBusy: boolean): Remembered | undefined {
    const { fence, past } = this.journal;
    return fence && { fence, isBusy, past };
  }

  /** Whether it is the rollout, in the plan, that the node is in already; else what was known of another one is forgotten. */
  #remember(fence: Order["fence"]): boolean {
    const { fence: known } = this.journal;
    const isSame = known?.name === fence.name && known.generation === fence.generation;
    const { past = [] } = rememberOrder(this.#remembered(false), fence);
    Object.assign(this.journal, { fence, past: [...past] });
    if (!isSame) delete this.journal.prepared;
    return isSame;
  }

  /** What the present update goes back to: what ran before it, unless another one has held since. */
  get wayBack(): Standing | undefined {
    const { previous, previousOf: of, fence, brings } = this.journal;
    return of?.name === fence?.name && of?.brings === brings ? previous : undefined;
  }

  set wayBack(previous: Standing) {
    const { journal } = this;
    const { doing, brings } = journal;
    if (doing) Object.assign(journal, { previous, previousOf: { name: doing.statement.name, brings } });
  }

  /** Whether the node runs that, and its next boot begins with what it began with then. */
  async isAt(then: Standing): Promise<boolean> {
    return isSameStanding(await this.#parts.present(this.journal.brings), then);
  }

  /** Whether the bastion, as whoever owns the node now, has confirmed that it reaches it. */
  async isConfirmed(): Promise<boolean> {
    const { fence } = this.journal;
    const said = (await this.#parts.ports.read(this.#path("confirmed")))?.trim();
    return fence !== undefined && said === `${fence.name} ${fence.epoch} ${fence.owner}`;
  }

  /** What was confirmed before says nothing of what begins now. */
  async forgetConfirmed(): Promise<void> {
    await this.#parts.ports.remove(this.#path("confirmed"));
  }

  /** Ms that are left of a limit for the present step. */
  left(limit: number): number {
    const { time } = this.journal.doing ?? {};
    return time ? limit - time.spent - (this.#parts.ports.uptime() - time.since) : limit;
  }

  async tick(): Promise<void> {
    const { ports } = this.#parts;
    await ports.sleep(tickMs);
    await this.takeOrders();
    const { doing } = this.journal;
    const passed = doing ? ports.uptime() - doing.time.since : 0;
    if (!doing || passed < chargeMs) return;
    doing.time = { ...doing.time, since: ports.uptime(), spent: doing.time.spent + passed };
    await this.save();
  }

  /** Waits for a piece of work, and takes orders meanwhile. */
  async during<T>(work: Promise<T>): Promise<T> {
    const ended = work.then(
      () => true,
      () => true,
    );
    const pause = async (): Promise<boolean> => {
      await this.#parts.ports.sleep(tickMs);
      return false;
    };
    while (!(await Promise.race([ended, pause()]))) await this.takeOrders();
    return work;
  }

  /** The node's word, and all that the updater knows, in one write; the agent's copy follows. */
  async say(word: Word): Promise<void> {
    const { ports } = this.#parts;
    const { fence, report } = this.journal;
    if (!fence) return;
    const at = report?.state === word.state ? report.at : ports.clock();
    this.journal.report = await this.#wordOf(fence, word, at);
    await this.save();
    await this.#give(this.journal.report);
  }

  /** An answer that changes nothing of what is known here: the next word is one about that again. */
  async #sayAside(fence: Fence, word: Word): Promise<void> {
    const { ports } = this.#parts;
    await this.#give(await this.#wordOf(fence, word, ports.clock()));
  }

  async #wordOf(fence: Fence, word: Word, at: number): Promise<Report> {
    const { ports, log, present } = this.#parts;
    const { brings, prepared, doing, report } = this.journal;
    const now = await present(brings);
    const { wayBack } = this;
    // Where it is already is nothing to go back to.
    const before = doing?.before ?? (wayBack && isSameStanding(now, wayBack) ? undefined : wayBack);
    this.#count = Math.max(this.#count + 1, (report?.epoch ?? 0) + 1, ports.clock());
    const said: Report = {
      epoch: this.#count,
      fence,
      ...word,
      present: Present.parse(now),
      ...defined({ lasting: now.lasting }),
      ...(before && { previous: Present.parse(before) }),
      ...prepared,
      at,
    };
    log.info("says", { ...said });
    return said;
  }

  /** A disk that takes nothing any more must not keep the node from going back. */
  async saveIfPossible(): Promise<boolean> {
    return this.#attempt(this.save());
  }

  async #attempt(writing: Promise<void>): Promise<boolean> {
    try {
      await writing;
      return true;
    } catch (error) {
      this.#parts.log.warn("the folder of updates takes nothing", { error: messageOf(error) });
      return false;
    }
  }

  async save(): Promise<void> {
    const { ports } = this.#parts;
    const { doing, next } = this.journal;
    // Before the journal speaks of it: who finds it there without need takes it away.
    if ((doing ?? next) && (await ports.read(this.#path("unfinished"))) === undefined)
      await ports.replace(this.#path("unfinished"), "");
    await ports.replace(this.#path("journal"), `${JSON.stringify(this.journal)}\n`);
  }
}

function isEqual(a: Statement, b: Statement): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
