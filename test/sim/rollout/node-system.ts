import type { UpdateStatement } from "#rollout/spec.ts";
import { UpdateFailure } from "#updater/failure.ts";
import type { BootState, NodeVersion, UpdateStrategy } from "#updater/strategy.ts";
import { first, versionOf } from "./targets.ts";

/** A node's store, profile and boot loader, and its running programs. Only `running`, the daemons and the heartbeat end with a power cut. */
export class NodeSystem {
  running = first;
  profile = first;
  /** The system of every boot. */
  default = first;
  /** The system of the next boot alone. */
  once: string | undefined;
  booted = first;
  areDaemonsUp = true;
  /** Whether the daemons of the last booted system do not start. */
  isBroken = false;
  /** The agent's last contact with a controller since the daemons' start. */
  heartbeat: string | undefined;
  /** The update that brought the node to its present version. */
  movedBy = "";
  /** The versions in the store, and whether each needs a boot. */
  readonly store = new Map([[first, false]]);

  /** Whether the node is wholly on one generation. */
  get isWhole(): boolean {
    return this.running === this.profile && this.profile === this.default && this.areDaemonsUp;
  }

  get state(): BootState {
    if (this.running === this.profile) return nodeVersion(this.running, 1);
    return { ...nodeVersion(this.running), lasting: nodeVersion(this.profile, 1) };
  }

  runs(id: string): void {
    this.running = id;
    this.areDaemonsUp = !this.isBroken;
    this.heartbeat = undefined;
  }

  boot(): void {
    this.booted = this.once ?? this.default;
    this.once = undefined;
    this.runs(this.booted);
  }
}

function nodeVersion(id: string, generation?: number): NodeVersion {
  return { id, version: versionOf(id), ...(generation === undefined ? {} : { generation }) };
}

/** The node and the random events of a simulated strategy. */
export interface StrategyHost {
  readonly system: NodeSystem;
  /** Called before each change. If the node loses its power then, the promise never resolves. */
  readonly step: () => Promise<void>;
  readonly sleep: (ms: number) => Promise<void>;
  /** The duration of an action that takes `low` to `high` ms on a node that is not slow. */
  readonly duration: (low: number, high: number) => number;
  readonly isBad: (share?: number) => boolean;
  /** Called at a switch. If the node is lost for ever then, the promise never resolves. */
  readonly risk: () => Promise<void>;
  readonly needsBoot: () => boolean;
  readonly works: (step: "prepare" | "activate" | "roll_back", statement: UpdateStatement) => void;
  readonly changed: () => void;
}

/** Brings a target into use in the order of the product's strategies (src/updater), with random durations and failures. */
export function simulatedStrategy(host: StrategyHost, statement: UpdateStatement): UpdateStrategy {
  const { system, step } = host;
  const { storePath: id = "", version = "" } = statement.bundle ?? {};
  const take = async (low: number, high: number, left: () => number, kind: "build" | "activation"): Promise<void> => {
    const ms = host.duration(low, high);
    const most = left();
    await host.sleep(Math.min(ms, most));
    if (ms > most) throw new UpdateFailure(kind, "its time was over");
  };
  const goDown = (): void => {
    system.areDaemonsUp = false;
    host.changed();
  };
  const bringUp = (to: string): void => {
    system.isBroken = false;
    system.runs(to);
    system.movedBy = statement.name;
    host.changed();
  };
  return {
    target: { id, version },
    isStored: (ran) => Promise.resolve(system.store.has(ran.id)),
    async fetch(_left, signal) {
      await host.sleep(host.duration(100, 8_000));
      signal.throwIfAborted();
    },
    async prepare(left) {
      host.works("prepare", statement);
      await take(1_000, 20_000, left, "build");
      if (host.isBad(1 / 4)) throw new UpdateFailure("build", "no room");
      await step();
      if (!system.store.has(id)) system.store.set(id, host.needsBoot());
      return { targetGeneration: 1, needsReboot: system.store.get(id) === true };
    },
    async activate(left, hasBooted) {
      host.works("activate", statement);
      const needsBoot = system.store.get(id);
      if (needsBoot === undefined) throw new UpdateFailure("activation", `${id} is not in the store`);
      if (hasBooted && system.booted !== id)
        throw new UpdateFailure("reboot", `the node came up with ${system.booted}, not with ${id}`);
      if (system.running === id && system.profile === id) return { needsBoot: false };
      await take(500, 3_000, left, "activation");
      await step();
      system.profile = id;
      await step();
      if (needsBoot) {
        system.once = id;
        return { needsBoot };
      }
      goDown();
      await host.risk();
      await take(3_000, 40_000, left, "activation");
      if (host.isBad()) throw new UpdateFailure("service", "the daemons did not start");
      await step();
      system.default = id;
      bringUp(id);
      return { needsBoot };
    },
    mark: () => Promise.resolve(system.heartbeat ?? ""),
    missing(running, mark) {
      if (system.running !== running.id)
        return Promise.resolve({ kind: "activation", message: `the node runs ${system.running}, not ${running.id}` });
      if (!system.areDaemonsUp) return Promise.resolve({ kind: "service", message: "the daemons are down" });
      const hasReached = system.heartbeat !== undefined && system.heartbeat !== mark;
      const isSilent = mark !== undefined && !hasReached;
      return Promise.resolve(
        isSilent ? { kind: "unreachable", message: "the agent reached no controller" } : undefined,
      );
    },
    async commit(held) {
      if (system.profile !== system.default && system.default === held.id)
        throw new UpdateFailure("reboot", "the node was booted again before the new system was kept");
      await step();
      system.profile = held.id;
      system.default = held.id;
    },
    async rollBack(to, left) {
      host.works("roll_back", statement);
      const lasts = (to.lasting ?? to).id;
      await step();
      system.once = undefined;
      system.profile = lasts;
      const isBooted = system.booted === id && id !== to.id && system.store.get(id) === true;
      await step();
      system.default = lasts;
      if (isBooted && system.running === id) return { needsBoot: true };
      if (system.running === to.id && system.areDaemonsUp) return { needsBoot: false };
      goDown();
      await host.sleep(Math.min(host.duration(3_000, 30_000), left() / 2));
      await step();
      bringUp(to.id);
      return { needsBoot: false };
    },
  };
}
