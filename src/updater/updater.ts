import type { Report } from "#rollout/records.ts";
import { bringsOf, isOnTarget, type Statement } from "#rollout/spec.ts";
import type { Desk, Word } from "./desk.ts";
import { UpdateFailure } from "./failure.ts";
import { endGate, whyGateFails } from "./gates.ts";
import type { Doing, Journal, Prepared, Step } from "./journal.ts";
import type { Log, Ports } from "./ports.ts";
import { refuseForOthers, refuseReplayed, type Self } from "./refuse.ts";
import { backFrom, beforeStep } from "./way-back.ts";
import type { Missing, UpdateWay } from "./way.ts";

export interface UpdaterParts {
  readonly desk: Desk;
  readonly ports: Ports;
  readonly log: Log;
  /** The node that this is. */
  readonly self: () => Promise<Self>;
  /** @throws UpdateFailure when this node cannot be brought there in any way */
  readonly wayOf: (statement: Statement) => UpdateWay;
}

/** Going back has its own time, no less than this, since the way forward may have used up all. */
const backMs = 180_000;
const rebootMs = 60_000;
/** The bastion looks each second what comes, and what it hears has to get through to it before the machine goes down. */
const heardMs = 10_000;
const unconfirmed: Missing = { kind: "unreachable", message: "the bastion did not come back over a new connection" };
const underWay: Readonly<Record<Step, Report["state"]>> = {
  prepare: "preparing",
  activate: "activating",
  roll_back: "rolling_back",
};

/**
 * Carries orders out, one after the other, until there is none. Whatever ends it, at any instant, the next one goes on from the journal:
 * each word is there before what it speaks of is done, and everything that is done may be done again.
 */
export class Updater {
  readonly #desk: Desk;
  readonly #ports: Ports;
  readonly #log: Log;
  readonly #self: UpdaterParts["self"];
  readonly #wayOf: UpdaterParts["wayOf"];

  constructor({ desk, ports, log, self, wayOf }: UpdaterParts) {
    this.#desk = desk;
    this.#ports = ports;
    this.#log = log;
    this.#self = self;
    this.#wayOf = wayOf;
  }

  async run(): Promise<void> {
    const desk = this.#desk;
    await desk.open();
    if (desk.journal.doing?.step === "activate") await endGate(this.#ports);
    for (;;) {
      await desk.takeOrders();
      const { doing, next } = desk.journal;
      if (doing) await this.#carryOn(doing);
      else if (next) await this.#begin(next);
      else break;
    }
    await desk.close();
  }

  async #begin({ step, statement, problem, contact = "controller" }: NonNullable<Journal["next"]>): Promise<void> {
    const { journal } = this.#desk;
    // It was taken while something else was under way: of another kind, too, where a controller makes that up.
    journal.brings = bringsOf(statement.spec);
    const doing: Doing = {
      step,
      statement,
      stage: "begun",
      boots: false,
      hasBooted: false,
      contact,
      mark: "",
      time: { bootId: await this.#ports.bootId(), since: this.#ports.uptime(), spent: 0 },
    };
    await this.#desk.forgetConfirmed();
    delete journal.next;
    journal.doing = doing;
    try {
      if (problem !== undefined) throw new UpdateFailure("build", problem);
      if (step !== "roll_back") {
        refuseForOthers(statement, await this.#self());
        refuseReplayed(statement, journal);
      }
      const way = this.#wayOf(statement);
      const now = await way.present();
      const before =
        step === "roll_back" ? await backFrom(this.#desk, way, now, statement) : beforeStep(this.#desk, step, way, now);
      if (before) doing.before = before;
      if (step === "activate" && isOnTarget(statement.spec, way.target.id, now) && this.#hasHeld())
        return await this.#end({ state: "activated" });
      doing.mark = await way.mark();
    } catch (error) {
      if (!(error instanceof UpdateFailure)) throw error;
      return this.#end({ state: "failed", failure: error.failure });
    }
    await this.#desk.say({ state: underWay[step] });
  }

  /** It was activated in this rollout, for another owner: what it did is not put at risk again for the present one. */
  #hasHeld(): boolean {
    const { fence, report } = this.#desk.journal;
    const { name, generation } = report?.fence ?? {};
    return report?.state === "activated" && name === fence?.name && generation === fence?.generation;
  }

  async #carryOn(doing: Doing): Promise<void> {
    try {
      const way = this.#wayOf(doing.statement);
      if (doing.boots) await this.#boot(doing);
      else if (doing.step === "prepare") await this.#prepare(doing, way);
      else if (doing.step === "roll_back") await this.#rollBack(doing, way);
      else if (doing.stage === "back") await this.#goBack(doing, way);
      else await this.#activate(doing, way);
    } catch (error) {
      await this.#fail(doing, error);
    }
  }

  async #prepare(doing: Doing, way: UpdateWay): Promise<void> {
    const limit = doing.statement.spec.timeouts.prepareSeconds * 1000;
    if (this.#desk.left(limit) <= 0) throw new UpdateFailure("build", `it was not prepared within ${limit / 1000} s`);
    const prepared: Prepared = await this.#desk.during(way.prepare(() => Math.max(1, this.#desk.left(limit))));
    this.#desk.journal.prepared = prepared;
    await this.#end({ state: "prepared" });
  }

  async #activate(doing: Doing, way: UpdateWay): Promise<void> {
    if (doing.stage !== "held") {
      const { activateSeconds, rebootSeconds } = doing.statement.spec.timeouts;
      const limit = 1000 * (doing.hasBooted ? rebootSeconds : activateSeconds);
      const left = (): number => this.#desk.left(limit);
      if (left() <= 0)
        throw new UpdateFailure(doing.hasBooted ? "reboot" : "activation", `it did not hold within ${limit / 1000} s`);
      const { needsBoot } = await this.#desk.during(way.activate(() => Math.max(1, left()), doing.hasBooted));
      if (needsBoot && !doing.hasBooted) {
        this.#startBoot(doing);
        return this.#desk.say({ state: "rebooting" });
      }
      await this.#holds(doing, way, left);
      doing.stage = "held";
      await this.#desk.save();
    }
    const held = await way.present();
    await way.commit(held);
    // Without anything before it was here when it came, and stays when it is taken back.
    this.#desk.wayBack = doing.before ?? held;
    const { journal } = this.#desk;
    journal.held[journal.brings] = doing.statement.signedAt;
    await this.#end({ state: "activated" });
  }

  #startBoot(doing: Doing): void {
    doing.boots = true;
    doing.time = { ...doing.time, since: this.#ports.uptime(), spent: 0 };
  }

  /** The next start, after the boot, goes on. */
  async #boot(doing: Doing): Promise<void> {
    const ports = this.#ports;
    const limit = doing.statement.spec.timeouts.rebootSeconds * 1000;
    const heard = ports.uptime() + heardMs;
    while (doing.contact === "bastion" && ports.uptime() < heard) await this.#desk.tick();
    const { code, stderr } = await ports.run(["systemctl", "reboot"], rebootMs);
    if (code !== 0) throw new UpdateFailure("reboot", `systemctl reboot failed: ${stderr.trim()}`);
    while (this.#desk.left(limit) > 0) await this.#desk.tick();
    throw new UpdateFailure("reboot", `the node did not go down within ${limit / 1000} s`);
  }

  /** Waits until it runs, the agent has spoken with a controller, or the bastion has reached the node anew, and the gates on the node hold. */
  async #holds(doing: Doing, way: UpdateWay, left: () => number): Promise<void> {
    const ports = this.#ports;
    const isBastions = doing.contact === "bastion";
    const mark = isBastions ? undefined : doing.mark;
    const hold = (): Promise<void> => this.#await(() => way.missing(way.target, mark), left);
    await hold();
    if (isBastions) {
      await this.#desk.say({ state: "activating", waitsFor: "bastion" });
      await this.#await(async () => ((await this.#desk.isConfirmed()) ? undefined : unconfirmed), left);
    }
    for (const gate of doing.statement.spec.healthGates) {
      const end = ports.uptime() + gate.withinSeconds * 1000;
      const within = (): number => Math.min(left(), end - ports.uptime());
      await this.#await(async () => {
        const why = await this.#desk.during(whyGateFails(ports, gate, left));
        return why === undefined ? undefined : { kind: "gate", message: `${gate.name}: ${why}` };
      }, within);
    }
    await hold();
  }

  /** Asks until nothing is missing, or the time is over. */
  async #await(ask: () => Promise<Missing | undefined>, left: () => number): Promise<void> {
    for (;;) {
      const missing = await ask();
      if (missing === undefined) return;
      if (left() <= 0) {
        const detail = (await missing.detail?.()) ?? "";
        throw new UpdateFailure(missing.kind, [missing.message, detail].filter((text) => text !== "").join("\n"));
      }
      await this.#desk.tick();
    }
  }

  async #rollBack(doing: Doing, way: UpdateWay): Promise<void> {
    if (!(await this.#to(doing, way))) return;
    if (doing.before) await way.commit(doing.before.lasting ?? doing.before);
    await this.#end({ state: "rolled_back" });
  }

  async #goBack(doing: Doing, way: UpdateWay): Promise<void> {
    const { failure } = doing;
    if (doing.before && !(await this.#to(doing, way))) return;
    await this.#end({ state: "failed", ...(failure && { failure }) });
  }

  /** Back to what ran before, if anything else came, and that it runs; false: behind a boot, which comes next. */
  async #to(doing: Doing, way: UpdateWay): Promise<boolean> {
    const { before } = doing;
    const { activateSeconds, rebootSeconds } = doing.statement.spec.timeouts;
    const limit = doing.hasBooted ? 1000 * rebootSeconds : Math.max(backMs, 1000 * activateSeconds);
    const left = (): number => this.#desk.left(limit);
    if (left() <= 0) throw new UpdateFailure("rollback", `the node was not back within ${limit / 1000} s`);
    if (before) {
      const { needsBoot } = await this.#desk.during(way.rollBack(before, () => Math.max(1, left())));
      if (needsBoot && doing.hasBooted) throw new UpdateFailure("rollback", `the node did not boot into ${before.id}`);
      if (needsBoot) {
        this.#startBoot(doing);
        await this.#desk.saveIfPossible();
        return false;
      }
    }
    const to = before ?? (await way.present());
    await this.#await(() => way.missing(to), left);
    return true;
  }

  /** What is no failure of the update ends the process; the next one tries again, as long as there is time. */
  async #fail(doing: Doing, error: unknown): Promise<void> {
    if (!(error instanceof UpdateFailure)) throw error;
    const [log, ports] = [this.#log, this.#ports];
    const { failure } = error;
    log.warn("a step failed", { step: doing.step, stage: doing.stage, ...failure });
    if (doing.step === "roll_back") return this.#end({ state: "failed", failure: { ...failure, kind: "rollback" } });
    if (doing.step === "prepare") return this.#end({ state: "failed", failure });
    if (doing.stage === "back") {
      // Nothing of it has held, and something may be here all the same.
      if (doing.before && !(await this.#desk.isAt(doing.before))) this.#desk.wayBack = doing.before;
      const first = doing.failure ?? failure;
      const message = `${first.message}; and it could not go back: ${failure.message}`;
      return this.#end({
        state: "failed",
        failure: { ...new UpdateFailure(first.kind, message).failure, stuck: true },
      });
    }
    doing.stage = "back";
    doing.boots = false;
    doing.hasBooted = false;
    doing.failure = failure;
    doing.time = { bootId: await ports.bootId(), since: ports.uptime(), spent: 0 };
    await this.#desk.saveIfPossible();
  }

  async #end(word: Word): Promise<void> {
    const { journal } = this.#desk;
    // Whoever hands it over again could else have this node go to and fro for ever.
    if (journal.doing && (word.state === "failed" || word.state === "rolled_back"))
      journal.spent[journal.brings] = latest(journal.spent[journal.brings], journal.doing.statement.signedAt);
    delete journal.doing;
    // The order that waits is another one: its owner would take this failure for an answer to it.
    if (journal.next && word.state === "failed") await this.#desk.save();
    else await this.#desk.say(word);
  }
}

function latest(a: string | undefined, b: string): string {
  return a !== undefined && Date.parse(a) > Date.parse(b) ? a : b;
}
