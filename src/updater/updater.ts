import type { Report } from "#rollout/records.ts";
import { isOnTarget } from "#rollout/spec.ts";
import { UpdateFailure } from "./failure.ts";
import { endGate, whyGateFails } from "./gates.ts";
import { readTaken, refuseForOthers, refuseReplayed, takenFile, takeOrders } from "./inbox.ts";
import { UpdaterJournal, type StepUnderWay, type NextStep } from "./journal.ts";
import type { UpdaterParts } from "./ports.ts";
import { beforeStep, rollbackTargetOf } from "./rollback-target.ts";
import { isSameState, type MissingCondition, type UpdateStep, type UpdateStrategy } from "./strategy.ts";

const tickMs = 1_000;
/** The least milliseconds for going back, even if the activation has used up its limit. */
const backMs = 180_000;
const rebootMs = 60_000;
/** Milliseconds before a boot in which the bastion receives the last report; it reads the journal each second. */
const lastReportMs = 10_000;
const bastionMissing: MissingCondition = {
  kind: "unreachable",
  message: "the bastion did not come back over a new connection",
};
const stateUnderWay: Readonly<Record<UpdateStep, Report["state"]>> = {
  prepare: "preparing",
  activate: "activating",
  roll_back: "rolling_back",
};

/**
 * Carries orders out, one after the other, until none is left. If this process is killed at any instant, the next one continues from the
 * journal: each step is in the journal before it begins, and may be repeated.
 */
export class Updater {
  readonly #parts: UpdaterParts;
  readonly #journal: UpdaterJournal;

  constructor(parts: UpdaterParts) {
    this.#parts = parts;
    this.#journal = new UpdaterJournal(parts);
  }

  async run(): Promise<void> {
    const [journal, parts] = [this.#journal, this.#parts];
    await journal.open();
    await readTaken(parts, journal);
    if (journal.data.doing?.step === "activate") await endGate(parts.ports);
    for (;;) {
      await takeOrders(parts, journal);
      const { doing, next } = journal.data;
      if (doing) await this.#continueStep(doing);
      else if (next) await this.#begin(next);
      else break;
    }
    // Nothing is left to do, so systemd need not start the updater again.
    await parts.ports.remove(takenFile(parts));
  }

  async #begin(next: NextStep): Promise<void> {
    const { data } = this.#journal;
    const { self, strategyOf } = this.#parts;
    const { step, statement } = next;
    const problem = step === "prepare" && next.contact === "controller" ? await this.#fetch(next) : undefined;
    if (data.next !== next) return;
    const doing = await this.#journal.begin(next);
    try {
      if (problem) throw problem;
      if (step !== "roll_back") {
        refuseForOthers(statement, self);
        refuseReplayed(statement, data);
      }
      const strategy = strategyOf(statement);
      const now = await this.#journal.present();
      const before =
        step === "roll_back"
          ? await rollbackTargetOf(this.#journal, strategy, now, statement)
          : beforeStep(this.#journal, step, strategy, now);
      if (before) doing.before = before;
      if (step === "activate" && isOnTarget(statement.spec, strategy.target.id, now) && this.#journal.hasHeld)
        return await this.#journal.end({ state: "activated" });
      doing.mark = await strategy.mark();
    } catch (error) {
      if (!(error instanceof UpdateFailure)) throw error;
      return this.#journal.end({ state: "failed", failure: error.failure });
    }
    await this.#journal.report({ state: stateUnderWay[step] });
  }

  /** Fetches the bundle of a preparation, until a later order replaces it. */
  async #fetch(next: NextStep): Promise<UpdateFailure | undefined> {
    const { ports, strategyOf } = this.#parts;
    const { data } = this.#journal;
    const end = ports.uptime() + 1000 * next.statement.spec.timeouts.prepareSeconds;
    const over = new AbortController();
    const stopIfReplaced = (): void => {
      if (data.next !== next) over.abort();
    };
    try {
      const { fetch } = strategyOf(next.statement);
      if (fetch)
        await this.#whileTakingOrders(
          fetch(() => end - ports.uptime(), over.signal),
          stopIfReplaced,
        );
      return undefined;
    } catch (error) {
      if (over.signal.aborted) return undefined;
      if (error instanceof UpdateFailure) return error;
      throw error;
    }
  }

  async #continueStep(doing: StepUnderWay): Promise<void> {
    try {
      const strategy = this.#parts.strategyOf(doing.statement);
      if (doing.boots) await this.#boot(doing);
      else if (doing.step === "prepare") await this.#prepare(doing, strategy);
      else if (doing.step === "roll_back") await this.#rollBack(doing, strategy);
      else if (doing.stage === "back") await this.#goBack(doing, strategy);
      else await this.#activate(doing, strategy);
    } catch (error) {
      await this.#fail(doing, error);
    }
  }

  async #prepare(doing: StepUnderWay, strategy: UpdateStrategy): Promise<void> {
    const limit = doing.statement.spec.timeouts.prepareSeconds * 1000;
    if (this.#journal.msLeft(limit) <= 0)
      throw new UpdateFailure("build", `it was not prepared within ${limit / 1000} s`);
    const msLeft = (): number => Math.max(1, this.#journal.msLeft(limit));
    this.#journal.data.prepared = await this.#whileTakingOrders(strategy.prepare(msLeft));
    await this.#journal.end({ state: "prepared" });
  }

  async #activate(doing: StepUnderWay, strategy: UpdateStrategy): Promise<void> {
    if (doing.stage !== "held") {
      const { activateSeconds, rebootSeconds } = doing.statement.spec.timeouts;
      const limit = 1000 * (doing.hasBooted ? rebootSeconds : activateSeconds);
      const msLeft = (): number => this.#journal.msLeft(limit);
      if (msLeft() <= 0)
        throw new UpdateFailure(doing.hasBooted ? "reboot" : "activation", `it did not hold within ${limit / 1000} s`);
      const { needsBoot } = await this.#whileTakingOrders(
        strategy.activate(() => Math.max(1, msLeft()), doing.hasBooted),
      );
      if (needsBoot && !doing.hasBooted) {
        this.#startBoot(doing);
        return this.#journal.report({ state: "rebooting" });
      }
      await this.#waitUntilHeld(doing, strategy, msLeft);
      doing.stage = "held";
      await this.#journal.save();
    }
    const held = await this.#journal.present();
    await strategy.commit(held);
    // Without `before` the node had the target before the update, and a rollback keeps that.
    this.#journal.rollbackTarget = doing.before ?? held;
    const { data } = this.#journal;
    data.held[data.brings] = doing.statement.signedAt;
    await this.#journal.end({ state: "activated" });
  }

  #startBoot(doing: StepUnderWay): void {
    doing.boots = true;
    doing.time = { ...doing.time, since: this.#parts.ports.uptime(), spent: 0 };
  }

  /** Boots the machine; the next start continues. */
  async #boot(doing: StepUnderWay): Promise<void> {
    const ports = this.#parts.ports;
    const limit = doing.statement.spec.timeouts.rebootSeconds * 1000;
    const reportEnd = ports.uptime() + lastReportMs;
    while (doing.contact === "bastion" && ports.uptime() < reportEnd) await this.#tick();
    const { code, stderr } = await ports.run(["systemctl", "reboot"], rebootMs);
    if (code !== 0) throw new UpdateFailure("reboot", `systemctl reboot failed: ${stderr.trim()}`);
    while (this.#journal.msLeft(limit) > 0) await this.#tick();
    throw new UpdateFailure("reboot", `the node did not go down within ${limit / 1000} s`);
  }

  /** Waits until the target runs, the agent has reached a controller (or the bastion the node), and the gates on the node hold. */
  async #waitUntilHeld(doing: StepUnderWay, strategy: UpdateStrategy, msLeft: () => number): Promise<void> {
    const ports = this.#parts.ports;
    const isOverSsh = doing.contact === "bastion";
    const mark = isOverSsh ? undefined : doing.mark;
    const waitForTarget = (): Promise<void> =>
      this.#waitUntilMet(() => strategy.missing(strategy.target, mark), msLeft);
    await waitForTarget();
    if (isOverSsh) {
      await this.#journal.report({ state: "activating", waitsFor: "bastion" });
      await this.#waitUntilMet(async () => (doing.isConfirmed ? undefined : bastionMissing), msLeft);
    }
    for (const gate of doing.statement.spec.healthGates) {
      const end = ports.uptime() + gate.withinSeconds * 1000;
      const within = (): number => Math.min(msLeft(), end - ports.uptime());
      await this.#waitUntilMet(async () => {
        const why = await this.#whileTakingOrders(whyGateFails(ports, gate, msLeft));
        return why === undefined ? undefined : { kind: "gate", message: `${gate.name}: ${why}` };
      }, within);
    }
    await waitForTarget();
  }

  /** Repeats a check until nothing is missing. @throws UpdateFailure when the time is over */
  async #waitUntilMet(ask: () => Promise<MissingCondition | undefined>, msLeft: () => number): Promise<void> {
    for (;;) {
      const missing = await ask();
      if (missing === undefined) return;
      if (msLeft() <= 0) {
        const detail = (await missing.detail?.()) ?? "";
        throw new UpdateFailure(missing.kind, [missing.message, detail].filter((text) => text !== "").join("\n"));
      }
      await this.#tick();
    }
  }

  async #rollBack(doing: StepUnderWay, strategy: UpdateStrategy): Promise<void> {
    if (!(await this.#returnToBefore(doing, strategy))) return;
    if (doing.before) await strategy.commit(doing.before.lasting ?? doing.before);
    await this.#journal.end({ state: "rolled_back" });
  }

  async #goBack(doing: StepUnderWay, strategy: UpdateStrategy): Promise<void> {
    const { failure } = doing;
    if (doing.before && !(await this.#returnToBefore(doing, strategy))) return;
    await this.#journal.end({ state: "failed", ...(failure && { failure }) });
  }

  /** Takes the node back to `doing.before` and waits until that runs. False: the machine must boot first. */
  async #returnToBefore(doing: StepUnderWay, strategy: UpdateStrategy): Promise<boolean> {
    const { before } = doing;
    const { activateSeconds, rebootSeconds } = doing.statement.spec.timeouts;
    const limit = doing.hasBooted ? 1000 * rebootSeconds : Math.max(backMs, 1000 * activateSeconds);
    const msLeft = (): number => this.#journal.msLeft(limit);
    if (msLeft() <= 0) throw new UpdateFailure("rollback", `the node was not back within ${limit / 1000} s`);
    if (before) {
      const { needsBoot } = await this.#whileTakingOrders(strategy.rollBack(before, () => Math.max(1, msLeft())));
      if (needsBoot && doing.hasBooted) throw new UpdateFailure("rollback", `the node did not boot into ${before.id}`);
      if (needsBoot) {
        this.#startBoot(doing);
        await this.#journal.saveIfPossible();
        return false;
      }
    }
    const to = before ?? (await this.#journal.present());
    await this.#waitUntilMet(() => strategy.missing(to), msLeft);
    return true;
  }

  /** Ends a failed step, or begins to go back. An error that is no UpdateFailure ends this process; the next one tries again within the limit. */
  async #fail(doing: StepUnderWay, error: unknown): Promise<void> {
    if (!(error instanceof UpdateFailure)) throw error;
    const [log, ports] = [this.#parts.log, this.#parts.ports];
    const { failure } = error;
    log.warn("a step failed", { step: doing.step, stage: doing.stage, ...failure });
    if (doing.step === "roll_back")
      return this.#journal.end({ state: "failed", failure: { ...failure, kind: "rollback" } });
    if (doing.step === "prepare") return this.#journal.end({ state: "failed", failure });
    if (doing.stage === "back") {
      // The update has not held, but parts of it may be on the node.
      if (doing.before && !isSameState(await this.#journal.present(), doing.before))
        this.#journal.rollbackTarget = doing.before;
      const first = doing.failure ?? failure;
      const message = `${first.message}; and it could not go back: ${failure.message}`;
      return this.#journal.end({
        state: "failed",
        failure: { ...new UpdateFailure(first.kind, message).failure, stuck: true },
      });
    }
    doing.stage = "back";
    doing.boots = false;
    doing.hasBooted = false;
    doing.failure = failure;
    doing.time = { bootId: await ports.bootId(), since: ports.uptime(), spent: 0 };
    await this.#journal.saveIfPossible();
  }

  /** Waits a second, then takes orders, so that an owner gets an answer soon. */
  async #tick(): Promise<void> {
    await this.#parts.ports.sleep(tickMs);
    await takeOrders(this.#parts, this.#journal);
    await this.#journal.charge();
  }

  /** The result of the work. Orders are taken every second until it ends, and `afterOrders` is called after each time. */
  async #whileTakingOrders<T>(work: Promise<T>, afterOrders: () => void = () => undefined): Promise<T> {
    const ended = work.then(
      () => true,
      () => true,
    );
    const pause = async (): Promise<boolean> => {
      await this.#parts.ports.sleep(tickMs);
      return false;
    };
    while (!(await Promise.race([ended, pause()]))) {
      await takeOrders(this.#parts, this.#journal);
      afterOrders();
    }
    return work;
  }
}
