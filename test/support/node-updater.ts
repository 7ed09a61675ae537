import { existsSync } from "node:fs";
import { watch } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { targetIdOf, type SignedStatement, type UpdateStatement } from "#rollout/spec.ts";
import { updateFiles } from "#updater/files.ts";
import { nodePorts } from "#updater/node-ports.ts";
import type { Ports, OwnNode } from "#updater/ports.ts";
import { Updater } from "#updater/updater.ts";
import type { MissingCondition, Preparation, NodeVersion, UpdateStep, UpdateStrategy } from "#updater/strategy.ts";

/** A node with the product's updater: the strategy is simulated, and every program is refused. */
export interface UpdaterNode {
  /** The folder of updates, which exists. */
  readonly folder: string;
  readonly signal: AbortSignal;
  readonly self: OwnNode;
  readonly verify: (signed: SignedStatement) => Promise<unknown>;
  readonly present: () => NodeVersion;
  /** Brings the node to another target. */
  readonly move: (to: NodeVersion) => Promise<void>;
  /** Called before each step. @throws UpdateFailure */
  readonly carryOut: (step: UpdateStep, statement: UpdateStatement) => Promise<Partial<Preparation> | void>;
  /** The condition that keeps the target from running; undefined: it runs. */
  readonly missing?: () => MissingCondition | undefined;
}

const silent = { info: () => undefined, warn: () => undefined };

/** Starts the updater whenever it has work, as systemd does, until the signal. */
export async function superviseUpdater(node: UpdaterNode): Promise<void> {
  const { folder, signal, self, verify, present } = node;
  const real = nodePorts(signal, () => Promise.resolve());
  const ports: Ports = {
    ...real,
    // Fifty times faster than on a real node.
    sleep: (ms) => sleep(ms / 50, undefined, { signal }),
    run: (words) => Promise.reject(new Error(`the node was not taught: ${words.join(" ")}`)),
  };
  const runIfNeeded = async (): Promise<void> => {
    while ([updateFiles.inbox, updateFiles.taken].some((name) => existsSync(join(folder, name)))) {
      await new Updater({
        folder,
        ports,
        log: silent,
        self,
        verify,
        present: async () => present(),
        strategyOf: (statement) => strategyOf(node, statement),
      }).run();
    }
  };
  try {
    const changes = watch(folder, { signal });
    await runIfNeeded();
    for await (const _ of changes) await runIfNeeded();
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

function strategyOf({ present, move, carryOut, missing }: UpdaterNode, statement: UpdateStatement): UpdateStrategy {
  const target = { id: targetIdOf(statement), version: statement.bundle?.version ?? present().version };
  const next = (): number => (present().generation ?? 1) + 1;
  return {
    target,
    isStored: () => Promise.resolve(true),
    prepare: async () => ({ targetGeneration: next(), needsReboot: false, ...(await carryOut("prepare", statement)) }),
    async activate() {
      await carryOut("activate", statement);
      if (present().id !== target.id) await move({ ...target, generation: next() });
      return { needsBoot: false };
    },
    mark: () => Promise.resolve(""),
    missing: async ({ id }) => {
      if (id !== present().id) return { kind: "activation", message: `it runs ${present().id}, not ${id}` };
      return id === target.id ? missing?.() : undefined;
    },
    commit: () => Promise.resolve(),
    async rollBack(to) {
      await carryOut("roll_back", statement);
      await move(to);
      return { needsBoot: false };
    },
  };
}
